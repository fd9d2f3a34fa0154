// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <future>
#include <optional>

#include "stack/raw_sockets.h"
#include "stack/support.h"
#include "support/bytes.h"
#include "support/software.h"

/// The common part of the tests of RC queue pairs: parties, ways to join them, and peers that speak
/// with plain sockets and bytes written from the RFCs, without the library's own code.
namespace diwarp::test {

struct RcOptions {
  size_t memory = 64 << 10;
  uint32_t entries = 256;  // of each completion queue
  QueuePairCapacity capacity = {};
  bool signal_all = false;
  Access access = Access::local_write;
  StreamOptions stream = {};
};

/// All rights of a peer to memory.
inline constexpr Access kOpen =
    Access::local_write | Access::remote_write | Access::remote_read | Access::remote_atomic;

/// An RC queue pair with all that belongs to it.
class RcParty {
 public:
  explicit RcParty(const Device& device, const RcOptions& options = {})
      : pd(device),
        send_cq(device, options.entries),
        recv_cq(device, options.entries),
        qp(pd, {.send_cq = send_cq,
                .recv_cq = recv_cq,
                .capacity = options.capacity,
                .signal_all = options.signal_all,
                .stream = options.stream}),
        memory(options.memory),
        mr(std::in_place, pd, std::span(memory), options.access) {}

  std::error_code post_recv(uint64_t wr_id, size_t offset, size_t length) {
    const Sge sge = mr->sge(offset, length);
    return qp.post_recv({.wr_id = wr_id, .sges = {&sge, 1}});
  }
  /// Receives of `length` bytes each, one after the other; wr_id counts from 0.
  void post_receives(size_t count, size_t length) {
    for (size_t i = 0; i < count; ++i) REQUIRE_FALSE(post_recv(i, i * length, length));
  }
  std::error_code send(size_t offset, size_t length, uint64_t wr_id = 0,
                       SendFlags flags = SendFlags::signaled) {
    const Sge sge = mr->sge(offset, length);
    return qp.post_send({.wr_id = wr_id, .sges = {&sge, 1}, .flags = flags});
  }
  /// Where `offset` of this memory is for a peer.
  RemoteMemory remote(size_t offset = 0) const { return {mr->rkey(), mr->base() + offset}; }
  /// An operation on the peer's memory with `length` bytes of this one's.
  std::error_code post(WrOpcode opcode, size_t offset, size_t length, RemoteMemory remote,
                       uint64_t wr_id = 0, SendFlags flags = SendFlags::signaled) {
    const Sge sge = mr->sge(offset, length);
    return qp.post_send(
        {.wr_id = wr_id, .sges = {&sge, 1}, .flags = flags, .opcode = opcode, .remote = remote});
  }
  std::span<std::byte> bytes(size_t offset, size_t length) {
    return std::span(memory).subspan(offset, length);
  }
  void fill(std::span<const std::byte> contents, size_t offset = 0) {
    std::copy(contents.begin(), contents.end(), memory.begin() + static_cast<ptrdiff_t>(offset));
  }
  rnic::RcQueuePair& impl() { return software(qp); }

  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  QueuePair qp;
  std::vector<std::byte> memory;
  std::optional<MemoryRegion> mr;
};

/// The next completion, which must come.
inline WorkCompletion next(CompletionQueue& cq) {
  const std::optional<WorkCompletion> completion = cq.wait(kPatience);
  REQUIRE(completion);
  return *completion;
}

/// Connects `a`, as the initiator, with `b`, through a listener on b's device.
inline void connect(RcParty& a, RcParty& b, const Device& device_of_b,
                    const ConnectOptions& asks = {}, const AcceptOptions& answers = {}) {
  Listener listener(device_of_b, 0);
  auto connecting =
      std::async(std::launch::async, [&] { return a.qp.connect(listener.address(), asks); });
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  request->accept(b.qp, answers);
  connecting.get();
}

using StreamEnd = std::unique_ptr<llp::Stream>;

inline rnic::NegotiatedConnection negotiated(StreamEnd stream, bool initiator,
                                             const mpa::NegotiatedParameters& parameters = {}) {
  rnic::NegotiatedConnection connection;
  connection.stream = std::move(stream);
  connection.initiator = initiator;
  connection.parameters = parameters;
  return connection;
}

/// Connects `a`, as the initiator, with `b` over these two ends. The parameters are those of `a`.
inline void join(RcParty& a, RcParty& b, std::pair<StreamEnd, StreamEnd> ends,
                 const mpa::NegotiatedParameters& parameters = {}) {
  mpa::NegotiatedParameters other = parameters;
  std::swap(other.ord, other.ird);
  std::swap(other.send_markers, other.receive_markers);
  a.impl().start(negotiated(std::move(ends.first), true, parameters));
  b.impl().start(negotiated(std::move(ends.second), false, other));
}

// --- Bytes.

inline std::vector<std::byte> first_of(std::vector<std::byte> bytes, size_t count) {
  bytes.resize(count);
  return bytes;
}

/// One FPDU with a Send segment (RFC 5044 section 4, RFC 5041 figure 5, RFC 5040 figure 3). Its
/// defaults are right; any field can be made wrong.
struct Fpdu {
  uint32_t msn = 1;
  uint32_t offset = 0;
  bool last = true;
  std::vector<std::byte> payload = {};

  uint8_t opcode = 3;
  uint8_t ddp_version = 1;
  uint8_t rdmap_version = 1;
  bool tagged = false;
  uint32_t queue_number = 0;
  size_t header_bytes = 18;  // fewer: cut short
  uint32_t crc_error = 0;    // xored
  bool crc = true;           // else zeros
};

inline std::vector<std::byte> fpdu_bytes(const Fpdu& fpdu) {
  std::vector<std::byte> out;
  append(out, fpdu.header_bytes + fpdu.payload.size(), 2);
  append(out, (fpdu.tagged ? 0x80U : 0U) | (fpdu.last ? 0x40U : 0U) | fpdu.ddp_version, 1);
  append(out, uint64_t{fpdu.rdmap_version} << 6 | fpdu.opcode, 1);
  append(out, 0, 4);
  append(out, fpdu.queue_number, 4);
  append(out, fpdu.msn, 4);
  append(out, fpdu.offset, 4);
  out.resize(2 + fpdu.header_bytes);
  out.insert(out.end(), fpdu.payload.begin(), fpdu.payload.end());
  while (out.size() % 4 != 0) out.push_back(std::byte{0});
  const uint32_t crc = fpdu.crc ? castagnoli(out) ^ fpdu.crc_error : 0;
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<std::byte>(crc >> shift));
  return out;
}

struct MpaFrame {
  bool reply = false;
  uint8_t flags = 0x40;  // M 0x80, C 0x40, R 0x20
  uint8_t revision = 1;
  std::vector<std::byte> private_data = {};
  std::optional<uint16_t> length = std::nullopt;  // instead of the right one
};

inline std::vector<std::byte> to_bytes(const MpaFrame& frame) {
  std::vector<std::byte> out = text(frame.reply ? "MPA ID Rep Frame" : "MPA ID Req Frame");
  append(out, frame.flags, 1);
  append(out, frame.revision, 1);
  append(out, frame.length.value_or(static_cast<uint16_t>(frame.private_data.size())), 2);
  out.insert(out.end(), frame.private_data.begin(), frame.private_data.end());
  return out;
}

// --- Plain sockets.

/// A plain, blocking stream whose waits are bounded.
class RawStream {
 public:
  explicit RawStream(UniqueFd fd) : fd_(std::move(fd)) {}

  static RawStream connect(const Address& to) {
    UniqueFd fd = raw::open(raw::Kind::stream, to.family());
    REQUIRE(raw::connect(fd.get(), to));
    return RawStream(std::move(fd));
  }

  /// False where the peer is gone.
  bool send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0) return false;
      bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return true;
  }

  /// As many bytes as that; fewer only if the stream ends or they never come.
  std::vector<std::byte> receive(size_t count) {
    std::vector<std::byte> bytes(count);
    size_t got = 0;
    while (got < count && readable()) got += receive_some(std::span(bytes).subspan(got));
    bytes.resize(got);
    return bytes;
  }

  /// Reads until the peer ends the stream.
  Ending ending() {
    std::array<std::byte, 4096> sink;
    while (readable()) receive_some(sink);
    return ended_;
  }

  void shutdown() { ::shutdown(fd_.get(), SHUT_WR); }
  void reset() { raw::reset(std::move(fd_)); }
  int descriptor() const { return fd_.get(); }
  UniqueFd take() { return std::move(fd_); }

 private:
  /// False once it has ended.
  bool readable() {
    pollfd watched{fd_.get(), POLLIN, 0};
    return ended_ == Ending::none && ::poll(&watched, 1, 30000) > 0;
  }
  size_t receive_some(std::span<std::byte> buffer) {
    const raw::Received came = raw::receive(fd_.get(), buffer);
    ended_ = came.ending;
    return came.bytes;
  }

  UniqueFd fd_;
  Ending ended_ = Ending::none;
};

class RawListener {
 public:
  RawListener() : fd_(raw::open(raw::Kind::stream)) {
    REQUIRE(raw::bind(fd_.get(), Address::loopback(AddressFamily::ipv4)));
    REQUIRE(::listen(fd_.get(), 16) == 0);
  }

  Address address() const { return raw::address_of(fd_.get()); }
  void close() { fd_.reset(); }
  /// From any thread. If nobody comes, every later use of the result fails.
  RawStream accept() {
    pollfd watched{fd_.get(), POLLIN, 0};
    if (::poll(&watched, 1, 30000) != 1) return RawStream(UniqueFd());
    return RawStream(UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  }

 private:
  UniqueFd fd_;
};

/// Two ends of a connection, with send buffers of this size if it is not 0. (Receive buffers
/// below a loopback segment would make TCP itself stutter.)
inline std::pair<RawStream, RawStream> raw_pair(int buffer = 0) {
  RawListener listener;
  RawStream first = RawStream::connect(listener.address());
  RawStream second = listener.accept();
  if (buffer != 0) {
    for (int fd : {first.descriptor(), second.descriptor()}) {
      const int receive_buffer = 128 << 10;
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
      ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
  }
  return {std::move(first), std::move(second)};
}

inline StreamEnd stream_of(RawStream socket) { return raw::adopt(socket.take()); }

/// What this program's devices have in place of a new stream to another device of theirs; null: the
/// stream itself.
inline StreamEnd (*between_devices)(StreamEnd) = nullptr;

/// Both of them as streams of devices.
inline std::pair<StreamEnd, StreamEnd> socket_streams(int buffer = 0) {
  auto [first, second] = raw_pair(buffer);
  const auto end = [](RawStream socket) {
    StreamEnd stream = stream_of(std::move(socket));
    return between_devices == nullptr ? std::move(stream) : between_devices(std::move(stream));
  };
  return {end(std::move(first)), end(std::move(second))};
}

// --- Bytes into and out of a stream that nobody else serves.

inline void write(llp::Stream& stream, std::span<const std::byte> bytes) {
  const llp::IoResult sent = stream.send({&bytes, 1});
  REQUIRE(sent.status == llp::IoStatus::ok);
  REQUIRE(sent.bytes == bytes.size());
}

/// What there is now.
inline std::vector<std::byte> read(llp::Stream& stream) {
  std::vector<std::byte> bytes(1 << 20);
  const llp::IoResult came = stream.receive(bytes);
  bytes.resize(came.status == llp::IoStatus::ok ? came.bytes : 0);
  return bytes;
}

inline Ending ending_of(llp::Stream& stream) {
  std::array<std::byte, 4096> sink;
  llp::IoResult came;
  do came = stream.receive(sink);
  while (came.status == llp::IoStatus::ok);
  if (came.status == llp::IoStatus::closed) return Ending::in_order;
  return came.status == llp::IoStatus::failed ? Ending::reset : Ending::none;
}

// --- Worlds.

/// Steps all devices until `cq` has a completion, which it takes. False where none comes.
inline bool step_until_completed(World& world, CompletionQueue& cq) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (drain(cq).empty()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    for (Device& device : world.devices) device.progress();
  }
  return true;
}

/// Two connected queue pairs, stepped by hand.
struct Couple {
  explicit Couple(size_t buffer = 1 << 20) : a(world.add_device()), b(world.add_device()) {
    join(a, b, llp::memory_stream_pair(buffer, 256));
  }
  Couple(const RcOptions& of_a, const RcOptions& of_b,
         const mpa::NegotiatedParameters& parameters = {})
      : a(world.add_device(), of_a), b(world.add_device(), of_b) {
    join(a, b, llp::memory_stream_pair(1 << 20, 256), parameters);
  }
  Device& device_of_a() { return world.devices[0]; }
  Device& device_of_b() { return world.devices[1]; }

  World world;
  RcParty a;
  RcParty b;
};

inline std::vector<WcStatus> statuses(CompletionQueue& cq) {
  std::vector<WcStatus> all;
  for (const WorkCompletion& completion : drain(cq)) all.push_back(completion.status);
  return all;
}

using Statuses = std::vector<WcStatus>;

/// A device with a listener and a queue pair to accept with.
struct Server {
  explicit Server(const ListenOptions& options = {}, const char* address = "127.0.0.1")
      : device(Device::open(address)), party(device), listener(std::in_place, device, 0, options) {}

  ConnectionRequest request() {
    std::optional<ConnectionRequest> next = listener->get_request(kPatience);
    REQUIRE(next);
    return std::move(*next);
  }
  /// Whether it still serves: a plain socket connects and gets its reply.
  void check_alive() {
    RawStream peer = RawStream::connect(listener->address());
    REQUIRE(peer.send(to_bytes(MpaFrame{})));
    request().accept(party.qp);
    CHECK(peer.receive(20) == to_bytes(MpaFrame{.reply = true}));
  }

  Device device;
  RcParty party;
  std::optional<Listener> listener;
};

/// A connection of another address of this host's, 127.0.0.2 and on.
inline RawStream connect_from(int host, const Address& to) {
  UniqueFd fd = raw::open(raw::Kind::stream);
  REQUIRE(raw::bind(fd.get(), Address::parse("127.0.0." + std::to_string(host))));
  REQUIRE(raw::connect(fd.get(), to));
  return RawStream(std::move(fd));
}

}  // namespace diwarp::test
