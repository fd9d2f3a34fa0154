// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "llp/impairment/impairment.h"
#include "stack/rc_hostile.h"

/// Long FPDUs, which go from the stream into memory without a stop between, or with one where a CRC
/// has to be right first.
namespace diwarp::test {

namespace {

constexpr size_t kPayload = 40000;
constexpr size_t kHalf = 20000;
constexpr std::byte kWritten{0xEE};

/// A queue pair whose peer is the bare other end of its stream.
struct Target {
  explicit Target(bool crc = false) : b(world.add_device(), {.memory = 1 << 17, .access = kOpen}) {
    auto ends = llp::memory_stream_pair(1 << 20, 65480);
    peer = std::move(ends.first);
    b.impl().start(negotiated(std::move(ends.second), false, {.crc = crc}));
  }

  void send(std::span<const std::byte> bytes) {
    write(*peer, bytes);
    world.settle();
  }
  void end_stream() {
    peer->shutdown_send();
    world.settle();
  }
  std::vector<std::byte> long_write(size_t length = kPayload) const {
    return framed(to_ulpdu(write_of(b.mr->rkey(), b.mr->base(), length)));
  }
  /// The answer to the only Read, which brings kPayload bytes to the front of the memory.
  std::vector<std::byte> long_response() const {
    Wire wire = write_of(b.mr->rkey(), b.mr->base(), kPayload);
    wire.opcode = 2;
    return framed(to_ulpdu(wire));
  }
  /// How many bytes of memory were written, from the front.
  size_t written() const {
    size_t count = 0;
    while (count < b.memory.size() && b.memory[count] == kWritten) ++count;
    return count;
  }
  bool untouched_from(size_t offset) const {
    return std::all_of(b.memory.begin() + static_cast<ptrdiff_t>(offset), b.memory.end(),
                       [](std::byte byte) { return byte == std::byte{0}; });
  }

  World world;
  RcParty b;
  StreamEnd peer;
};

std::vector<std::byte> long_body() { return std::vector<std::byte>(kPayload, kWritten); }

std::vector<std::byte> long_send() { return fpdu_bytes(Fpdu{.payload = long_body()}); }

std::span<const std::byte> from(const std::vector<std::byte>& bytes, size_t offset) {
  return std::span(bytes).subspan(offset);
}

std::span<const std::byte> half_of(const std::vector<std::byte>& fpdu) {
  return std::span(fpdu).first(kHalf);
}

/// Two queue pairs over a socket, and Writes that pour into the memory of the second.
struct Pouring {
  Pouring() : a(one, {.memory = kSize}), b(other, {.memory = kSize, .access = kOpen}) {
    connect(a, b, other, {.crc = false}, {.crc = false});
    a.fill(pattern(kSize, 1));
    for (uint64_t i = 0; i < 16; ++i)
      REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, kSize, b.remote(), i));
    for (int i = 0; i < 2; ++i) CHECK(next(a.send_cq).status == WcStatus::success);
  }

  /// Posts more, as long as it may.
  void pour(const RemoteMemory& to) {
    static_cast<void>(a.post(WrOpcode::rdma_write, 0, kSize, to, 0));
    drain(a.send_cq);
  }

  static constexpr size_t kSize = 1 << 20;
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a;
  RcParty b;
};

bool comes_to_error(const QueuePair& qp) {
  const Time deadline = std::chrono::steady_clock::now() + kPatience;
  while (qp.state() != QpState::error && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  return qp.state() == QpState::error;
}

}  // namespace

TEST_CASE("Of a long Write the beginning is placed at once without CRCs, and never with them") {
  const bool crc = GENERATE(false, true);
  Target target(crc);
  const std::vector<std::byte> fpdu = target.long_write();
  target.send(half_of(fpdu));
  CHECK(target.written() == (crc ? 0 : kHalf - 16));
  CHECK(target.untouched_from(kHalf - 16));
  target.send(from(fpdu, kHalf));
  CHECK(target.written() == kPayload);
  CHECK(target.untouched_from(kPayload));
  CHECK(target.world.devices[0].counter("rc_rx_fpdus") == 1);
  CHECK(target.world.devices[0].counter("rc_rx_bytes") == fpdu.size());
}

TEST_CASE("A long Write with a wrong CRC writes nothing, however it comes") {
  Target target(true);
  std::vector<std::byte> fpdu = target.long_write();
  fpdu.back() ^= std::byte{1};
  target.send(half_of(fpdu));
  target.send(from(fpdu, kHalf));
  CHECK(target.untouched_from(0));
  REQUIRE(target.b.qp.query().terminate);
  CHECK(target.b.qp.query().terminate->code == TerminateCode{2, 0, 2});
}

TEST_CASE("A long Send fills the SGEs of its receive and completes it at its very end") {
  const bool crc = GENERATE(false, true);
  const size_t rest = GENERATE(size_t{1}, size_t{4}, size_t{5}, size_t{12000});
  CAPTURE(crc, rest);
  Target target(crc);
  RcParty& b = target.b;
  const std::array<Sge, 3> sges{b.mr->sge(0, 100), b.mr->sge(1000, 15000), b.mr->sge(50000, 30000)};
  REQUIRE_FALSE(b.qp.post_recv({.wr_id = 7, .sges = sges}));
  const std::vector<std::byte> fpdu = long_send();
  target.send(half_of(fpdu));
  target.send(from(fpdu, kHalf).first(fpdu.size() - kHalf - rest));
  CHECK(drain(b.recv_cq).empty());
  target.send(from(fpdu, fpdu.size() - rest));
  const std::vector<WorkCompletion> completions = drain(b.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].wr_id == 7);
  CHECK(completions[0].byte_count == kPayload);
  std::vector<std::byte> expected(b.memory.size());
  for (const auto& [begin, length] : {std::pair(0, 100), {1000, 15000}, {50000, 24900}})
    std::fill_n(expected.begin() + begin, length, kWritten);
  CHECK(same(b.memory, expected));
}

TEST_CASE("A long Send that finds no receive is held, with all that came after it") {
  const bool crc = GENERATE(false, true);
  CAPTURE(crc);
  Target target(crc);
  const std::vector<std::byte> fpdu = long_send();
  const std::vector<std::byte> behind = fpdu_bytes(Fpdu{.msn = 2, .payload = text("behind")});
  target.send(half_of(fpdu));
  std::vector<std::byte> rest(from(fpdu, kHalf).begin(), from(fpdu, kHalf).end());
  rest.insert(rest.end(), behind.begin(), behind.end());
  target.send(rest);
  CHECK(target.untouched_from(0));
  REQUIRE_FALSE(target.b.post_recv(3, 0, kPayload));
  target.world.settle();
  CHECK(statuses(target.b.recv_cq) == Statuses{WcStatus::success});
  CHECK(target.written() == kPayload);
  REQUIRE_FALSE(target.b.post_recv(4, kPayload, 6));
  target.world.settle();
  CHECK(statuses(target.b.recv_cq) == Statuses{WcStatus::success});
  CHECK(same(target.b.bytes(kPayload, 6), text("behind")));
}

TEST_CASE("Of a long FPDU that must be refused nothing is placed, though its beginning came") {
  Target target;
  RcParty& b = target.b;
  SECTION("a Write over the end of its region") {
    const std::vector<std::byte> fpdu =
        framed(to_ulpdu(write_of(b.mr->rkey(), b.mr->base() + b.memory.size() - 39999, kPayload)));
    target.send(half_of(fpdu));
    CHECK(b.qp.state() == QpState::rts);
    target.send(from(fpdu, kHalf));
    CHECK(b.qp.query().terminate->code == TerminateCode{1, 1, 1});
  }
  SECTION("a Send longer than its receive") {
    REQUIRE_FALSE(b.post_recv(0, 0, kPayload - 1));
    const std::vector<std::byte> fpdu = long_send();
    target.send(half_of(fpdu));
    target.send(from(fpdu, kHalf));
    CHECK(statuses(b.recv_cq) == Statuses{WcStatus::local_length_error});
    CHECK(b.qp.query().terminate->code == TerminateCode{1, 2, 5});
  }
  SECTION("a Read Response that nobody asked for") {
    const std::vector<std::byte> fpdu = target.long_response();
    target.send(half_of(fpdu));
    target.send(from(fpdu, kHalf));
    CHECK(b.qp.query().terminate->code == TerminateCode{1, 1, 0});
  }
  SECTION("a Read Response that does not begin where the sink does") {
    target.send(target.long_write(0));  // the responder may send from now on
    REQUIRE_FALSE(b.post(WrOpcode::rdma_read, 0, kPayload, {0x1234, 0}, 7));
    target.world.settle();
    Wire wire = write_of(b.mr->rkey(), b.mr->base() + 1, kPayload);
    wire.opcode = 2;
    const std::vector<std::byte> fpdu = framed(to_ulpdu(wire));
    target.send(half_of(fpdu));
    CHECK(b.qp.state() == QpState::rts);
    target.send(from(fpdu, kHalf));
    CHECK(b.qp.query().terminate->code == TerminateCode{1, 1, 1});
  }
  SECTION("a Send with the number of another") {
    REQUIRE_FALSE(b.post_recv(0, 0, kPayload));
    const std::vector<std::byte> fpdu = fpdu_bytes(Fpdu{.msn = 2, .payload = long_body()});
    target.send(half_of(fpdu));
    CHECK(b.qp.state() == QpState::rts);
    target.send(from(fpdu, kHalf));
    CHECK(statuses(b.recv_cq) == Statuses{WcStatus::wr_flush_error});
    REQUIRE(b.qp.query().terminate);
    CHECK(b.qp.query().terminate->code == TerminateCode{1, 2, 3});
  }
  CHECK(b.qp.state() == QpState::error);
  CHECK(target.untouched_from(0));
}

TEST_CASE("Memory that goes away in the middle of a long Write is not written any more") {
  Target target;
  const std::vector<std::byte> fpdu = target.long_write();
  target.send(half_of(fpdu));
  target.b.mr.reset();
  target.send(from(fpdu, kHalf));
  CHECK(target.written() == kHalf - 16);
  CHECK(target.untouched_from(kHalf - 16));
  REQUIRE(target.b.qp.query().terminate);
  CHECK(target.b.qp.query().terminate->code == TerminateCode{1, 1, 0});
  CHECK(same(target.b.qp.query().terminate->headers, from(fpdu, 2).first(14)));
}

TEST_CASE("A responder whose first FPDU is long and must be refused half-way sends no Terminate") {
  Target target;
  const std::vector<std::byte> fpdu = target.long_write();
  target.send(half_of(fpdu));
  target.b.mr.reset();
  target.send(from(fpdu, kHalf));
  CHECK(target.b.qp.state() == QpState::error);
  CHECK(read(*target.peer).empty());
  CHECK(ending_of(*target.peer) == Ending::reset);
}

TEST_CASE("A receive whose memory goes away in the middle of a long Send fails") {
  Target target;
  REQUIRE_FALSE(target.b.post_recv(0, 0, kPayload));
  const std::vector<std::byte> fpdu = long_send();
  target.send(half_of(fpdu));
  target.b.mr.reset();
  target.send(from(fpdu, kHalf));
  CHECK(statuses(target.b.recv_cq) == Statuses{WcStatus::local_protection_error});
  CHECK(target.written() == kHalf - 20);
  CHECK(target.b.qp.state() == QpState::error);
}

TEST_CASE("A Read whose sink goes away in the middle of a long response fails") {
  Target target;
  RcParty& b = target.b;
  target.send(target.long_write(0));  // the responder may send from now on
  REQUIRE_FALSE(b.post(WrOpcode::rdma_read, 0, kPayload, {0x1234, 0}, 7));
  target.world.settle();
  const std::vector<std::byte> fpdu = target.long_response();
  target.send(half_of(fpdu));
  CHECK(target.written() == kHalf - 16);
  b.mr.reset();
  target.send(from(fpdu, kHalf));
  CHECK(target.written() == kHalf - 16);
  CHECK(target.untouched_from(kHalf - 16));
  CHECK(statuses(b.send_cq) == Statuses{WcStatus::local_protection_error});
  REQUIRE(b.qp.query().terminate);
  CHECK(b.qp.query().terminate->code == TerminateCode{1, 1, 0});
  CHECK(same(b.qp.query().terminate->headers, from(fpdu, 2).first(14)));
}

TEST_CASE("A long Read Response may end with an empty segment") {
  Target target;
  target.send(target.long_write(0));  // the responder may send from now on
  REQUIRE_FALSE(target.b.post(WrOpcode::rdma_read, 0, kPayload, {0x1234, 0}, 7));
  target.world.settle();
  std::vector<std::byte> fpdu = target.long_response();
  fpdu[2] &= ~std::byte{0x40};  // not the last one
  target.send(half_of(fpdu));
  target.send(from(fpdu, kHalf));
  CHECK(drain(target.b.send_cq).empty());
  Wire last = write_of(target.b.mr->rkey(), target.b.mr->base() + kPayload, 0);
  last.opcode = 2;
  target.send(framed(to_ulpdu(last)));
  CHECK(statuses(target.b.send_cq) == Statuses{WcStatus::success});
  CHECK(target.written() == kPayload);
}

TEST_CASE("Of an FPDU 8192 bytes that are missing go directly into memory and 8191 wait") {
  const size_t missing = GENERATE(size_t{8192}, size_t{8191});
  const size_t came = GENERATE(size_t{0}, size_t{3000});  // of its payload
  Target target;
  const std::vector<std::byte> fpdu = target.long_write(came + missing);
  const size_t beginning = 16 + came;
  target.send(std::span(fpdu).first(beginning));
  target.send(from(fpdu, beginning).first(100));
  CHECK(target.written() == (missing == 8192 ? came + 100 : 0));
  target.send(from(fpdu, beginning + 100));
  CHECK(target.written() == came + missing);
}

TEST_CASE("A queue pair in error keeps no timer for the FPDU of which it has a half") {
  const bool reset = GENERATE(false, true);
  Target target(true);
  target.send(half_of(target.long_write()));
  if (GENERATE(false, true)) target.end_stream();
  target.b.qp.modify(QpState::error);
  if (reset) target.b.qp.modify(QpState::reset);
  target.world.advance(3s);
  target.world.advance(3s);
  CHECK(software(target.world.devices[0]).engine().timers().empty());
}

TEST_CASE("A receive for which not one FPDU came whole is flushed like those after it") {
  const size_t cut = GENERATE(kHalf + 1, kPayload + 20, kPayload + 22);
  Target target;
  REQUIRE_FALSE(target.b.post_recv(0, 0, kPayload));
  REQUIRE_FALSE(target.b.post_recv(1, 0, kPayload));
  const std::vector<std::byte> fpdu = long_send();
  target.send(half_of(fpdu));
  target.send(std::span(fpdu).first(cut).subspan(kHalf));
  target.end_stream();
  CHECK(statuses(target.b.recv_cq) == Statuses{WcStatus::wr_flush_error, WcStatus::wr_flush_error});
  CHECK(target.b.qp.state() == QpState::error);
  CHECK(target.world.devices[0].counter("rc_resets") == 1);
}

TEST_CASE("A receive that is partly filled when the stream ends inside a long FPDU fails") {
  Target target;
  REQUIRE_FALSE(target.b.post_recv(0, 0, 2 * kPayload));
  REQUIRE_FALSE(target.b.post_recv(1, 0, kPayload));
  target.send(fpdu_bytes(Fpdu{.last = false, .payload = std::vector<std::byte>(kPayload)}));
  const std::vector<std::byte> second =
      fpdu_bytes(Fpdu{.offset = kPayload, .payload = std::vector<std::byte>(kPayload, kWritten)});
  target.send(half_of(second));
  target.end_stream();
  CHECK(statuses(target.b.recv_cq) == Statuses{WcStatus::general_error, WcStatus::wr_flush_error});
}

TEST_CASE("A long Send with invalidate that may not be done fails at its very end") {
  Target target;
  REQUIRE_FALSE(target.b.post_recv(0, 0, kPayload));
  std::vector<std::byte> fpdu =
      framed(to_ulpdu({.opcode = 4, .word = 0x1234, .body = long_body()}));
  target.send(half_of(fpdu));
  target.send(from(fpdu, kHalf));
  CHECK(statuses(target.b.recv_cq) == Statuses{WcStatus::general_error});
  REQUIRE(target.b.qp.query().terminate);
  CHECK(target.b.qp.query().terminate->code.layer == 0);
}

TEST_CASE("A queue pair may be destroyed, or reset and used anew, in the middle of a long FPDU") {
  Target target;
  RcParty& b = target.b;
  REQUIRE_FALSE(b.post_recv(0, 0, kPayload));
  target.send(half_of(long_send()));
  if (GENERATE(false, true)) return;
  b.qp.modify(QpState::error);
  CHECK(statuses(b.recv_cq) == Statuses{WcStatus::wr_flush_error});
  b.qp.modify(QpState::reset);
  b.qp.modify(QpState::init);
  auto ends = llp::memory_stream_pair(1 << 20, 65480);
  b.impl().start(negotiated(std::move(ends.second), false, {.crc = false}));
  REQUIRE_FALSE(b.post_recv(1, 0, kPayload));
  write(*ends.first, long_send());
  target.world.settle();
  CHECK(statuses(b.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("Long FPDUs among short ones arrive whole whatever parts the stream brings") {
  const bool crc = GENERATE(false, true);
  const bool markers = GENERATE(false, true);
  const auto chunk = GENERATE(as<uint32_t>{}, 1500, 9000, 200000);
  const size_t buffer = GENERATE(size_t{10'000}, size_t{300'000});
  CAPTURE(crc, markers, chunk, buffer);
  constexpr size_t kSize = 150'001;
  constexpr RcOptions kOptions{.memory = 4 * kSize, .access = kOpen};
  World world;
  RcParty a(world.add_device(), kOptions);
  RcParty b(world.add_device(), kOptions);
  auto ends = llp::memory_stream_pair(buffer, 65480);
  llp::StreamImpairment parts;
  parts.seed = 5;
  parts.max_chunk = chunk;
  for (StreamEnd* end : {&ends.first, &ends.second})
    *end = std::make_unique<llp::ImpairedStream>(std::move(*end), parts, world.clock);
  join(a, b, std::move(ends), {.crc = crc, .send_markers = markers, .receive_markers = markers});
  a.fill(pattern(kSize, 1));
  b.fill(pattern(kSize, 2), 2 * kSize);
  for (size_t length : {kSize, size_t{10}, size_t{9000}})
    REQUIRE_FALSE(b.post_recv(length, 0, length));
  REQUIRE_FALSE(a.send(0, kSize, 1));
  REQUIRE_FALSE(a.post(WrOpcode::rdma_read, 3 * kSize, kSize, b.remote(2 * kSize), 2));
  REQUIRE_FALSE(a.send(0, 10, 3));
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, kSize, b.remote(kSize), 4));
  REQUIRE_FALSE(a.send(0, 9000, 5));
  world.settle();
  CHECK(statuses(a.send_cq) == Statuses(5, WcStatus::success));
  CHECK(statuses(b.recv_cq) == Statuses(3, WcStatus::success));
  CHECK(same(b.bytes(0, kSize), pattern(kSize, 1)));
  CHECK(same(b.bytes(kSize, kSize), pattern(kSize, 1)));
  CHECK(same(a.bytes(3 * kSize, kSize), pattern(kSize, 2)));
}

TEST_CASE(
    "Long Writes that pour in from a socket stop where their memory is deregistered and freed") {
  for (int round = 0; round < 4; ++round) {
    Pouring scene;
    const RemoteMemory gone = scene.b.remote();
    scene.b.mr.reset();
    std::vector<std::byte>().swap(scene.b.memory);
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (scene.b.qp.state() != QpState::error && std::chrono::steady_clock::now() < deadline)
      scene.pour(gone);
    REQUIRE(scene.b.qp.state() == QpState::error);
    REQUIRE(scene.b.qp.query().terminate);
    CHECK(scene.b.qp.query().terminate->code == TerminateCode{1, 1, 0});
  }
}

TEST_CASE("Long Writes that pour in from a socket stop where their queue pair is moved to error") {
  for (int round = 0; round < 4; ++round) {
    Pouring scene;
    REQUIRE(eventually([&] { return scene.other.counter("rc_rx_bytes") > Pouring::kSize; }));
    scene.b.qp.modify(QpState::error);
    std::fill(scene.b.memory.begin(), scene.b.memory.end(), std::byte{});
    CHECK(comes_to_error(scene.a.qp));
    CHECK(scene.b.memory == std::vector<std::byte>(Pouring::kSize));
  }
}

}  // namespace diwarp::test
