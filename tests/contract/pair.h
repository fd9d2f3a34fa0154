// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "contract/device.h"
#include "support/keyed_contents.h"

/// Queue pairs with all that belongs to them, and connections between two.
namespace diwarp::contract {

/// What a peer may do to memory on every device.
inline constexpr Access kOpen = Access::local_write | Access::remote_write | Access::remote_read;

/// What makes memory the sink of a Read on every device.
inline constexpr Access kSink = Access::local_write | Access::remote_write;

/// Whole pages, of zeros: nothing else of the process lies in what is registered, so that a forked
/// child does not miss it where a device keeps registered pages from children.
class Pages {
 public:
  explicit Pages(size_t size) : size_(size), bytes_(allocate(size)) {}
  std::span<std::byte> bytes() const { return {bytes_.get(), size_}; }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Release {
    void operator()(std::byte* bytes) const { ::operator delete[](bytes, kPage); }
  };
  static std::byte* allocate(size_t size) {
    const size_t page = static_cast<size_t>(kPage);
    const size_t whole = (size + page - 1) / page * page;
    auto* const bytes = static_cast<std::byte*>(::operator new[](whole, kPage));
    std::memset(bytes, 0, whole);
    return bytes;
  }

  size_t size_;
  std::unique_ptr<std::byte[], Release> bytes_;
};

inline std::vector<std::byte> text(std::string_view characters) {
  const auto bytes = std::as_bytes(std::span(characters));
  return {bytes.begin(), bytes.end()};
}

/// Bytes that differ from place to place, and from key to key.
inline std::vector<std::byte> contents(size_t size, uint64_t key) {
  std::vector<std::byte> bytes(size);
  test::fill(bytes, key);
  return bytes;
}

struct PartyOptions {
  size_t memory = 64 << 10;
  uint32_t entries = 256;  // of each completion queue
  QueuePairCapacity capacity = {};
  bool signal_all = false;
  Access access = kSink;
  StreamOptions stream = {};
};

/// A queue pair with its protection domain, its completion queues and some registered memory.
class Party {
 public:
  explicit Party(const Device& device, const PartyOptions& options = {})
      : pages(options.memory),
        pd(device),
        send_cq(device, options.entries),
        recv_cq(device, options.entries),
        qp(pd, {.send_cq = send_cq,
                .recv_cq = recv_cq,
                .capacity = options.capacity,
                .signal_all = options.signal_all,
                .stream = options.stream}),
        mr(std::in_place, pd, pages.bytes(), options.access) {}

  std::error_code post_recv(uint64_t wr_id, size_t offset, size_t length) {
    return qp.post_recv({.wr_id = wr_id, .sges = mr->sge(offset, length)});
  }
  /// Receives of `length` bytes each, one after the other; wr_id counts from 0.
  void post_receives(size_t count, size_t length) {
    for (size_t i = 0; i < count; ++i) REQUIRE_FALSE(post_recv(i, i * length, length));
  }
  std::error_code send(size_t offset, size_t length, uint64_t wr_id = 0,
                       SendFlags flags = SendFlags::signaled) {
    return qp.post_send({.wr_id = wr_id, .sges = mr->sge(offset, length), .flags = flags});
  }
  /// An operation on the peer's memory with `length` bytes of this one's.
  std::error_code post(WrOpcode opcode, size_t offset, size_t length, RemoteMemory remote,
                       uint64_t wr_id = 0, SendFlags flags = SendFlags::signaled) {
    return qp.post_send({.wr_id = wr_id,
                         .sges = mr->sge(offset, length),
                         .flags = flags,
                         .opcode = opcode,
                         .remote = remote});
  }
  std::error_code write(size_t offset, size_t length, RemoteMemory remote, uint64_t wr_id = 0) {
    return post(WrOpcode::rdma_write, offset, length, remote, wr_id);
  }
  std::error_code read(size_t offset, size_t length, RemoteMemory remote, uint64_t wr_id = 0) {
    return post(WrOpcode::rdma_read, offset, length, remote, wr_id);
  }

  /// Where `offset` of this memory is for a peer.
  RemoteMemory remote(size_t offset = 0) const { return {mr->rkey(), mr->base() + offset}; }
  std::span<std::byte> bytes(size_t offset, size_t length) const {
    return pages.bytes().subspan(offset, length);
  }
  void fill(size_t offset, size_t length, uint64_t key) { test::fill(bytes(offset, length), key); }
  void clear() { std::memset(pages.bytes().data(), 0, pages.bytes().size()); }
  /// Whether fill() with this key wrote what is there.
  bool holds(size_t offset, size_t length, uint64_t key) const {
    return !test::first_wrong(bytes(offset, length), key);
  }
  bool is_zero(size_t offset, size_t length) const {
    for (const std::byte byte : bytes(offset, length))
      if (byte != std::byte{0}) return false;
    return true;
  }

  Pages pages;
  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  QueuePair qp;
  std::optional<MemoryRegion> mr;
};

/// Connects `a`, as the initiator, with `b`, through a listener on b's device.
inline void join(QueuePair& a, QueuePair& b, const Device& device_of_b, ConnectOptions asks = {},
                 const AcceptOptions& answers = {}) {
  asks.timeout = kPatience;
  Listener listener(device_of_b, 0);
  auto connecting = std::async(std::launch::async, [&] { a.connect(listener.address(), asks); });
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  request->accept(b, answers);
  connecting.get();
}

/// Two connected queue pairs: `a`, the initiator, of the device under test, and `b` of the peer's.
struct Pair {
  explicit Pair(const PartyOptions& of_a = {}, const PartyOptions& of_b = {},
                const ConnectOptions& asks = {}, const AcceptOptions& answers = {})
      : device_a(open_device()), device_b(open_peer()), a(device_a, of_a), b(device_b, of_b) {
    join(a.qp, b.qp, device_b, asks, answers);
  }

  Device device_a;
  Device device_b;
  Party a;
  Party b;
};

/// A message of a few bytes gets from `from` to `to`.
inline void check_message(Party& from, Party& to, uint64_t key = 1) {
  to.clear();
  REQUIRE_FALSE(to.post_recv(77, 0, 100));
  from.fill(200, 50, key);
  REQUIRE_FALSE(from.send(200, 50, 78));
  const WorkCompletion received = next_good(to.recv_cq);
  CHECK(received.wr_id == 77);
  CHECK(received.byte_count == 50);
  CHECK(to.holds(0, 50, key));
  CHECK(next_good(from.send_cq).wr_id == 78);
}

}  // namespace diwarp::contract
