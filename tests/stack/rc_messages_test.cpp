// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// RC queue pairs carry messages whole, in order and once.
namespace diwarp::test {

namespace {

/// Sends `contents` from `a` to `b`, whose receive must then hold it.
void check_message(RcParty& a, RcParty& b, std::span<const std::byte> contents) {
  a.fill(contents);
  std::fill(b.memory.begin(), b.memory.end(), std::byte{0});
  REQUIRE_FALSE(b.post_recv(7, 0, b.memory.size()));
  REQUIRE_FALSE(a.send(0, contents.size(), 8));
  const WorkCompletion received = next(b.recv_cq);
  REQUIRE(received.status == WcStatus::success);
  REQUIRE(received.opcode == WcOpcode::recv);
  REQUIRE(received.wr_id == 7);
  REQUIRE(received.byte_count == contents.size());
  REQUIRE(received.qp_number == b.qp.number());
  REQUIRE(same(b.bytes(0, contents.size()), contents));
  const WorkCompletion sent = next(a.send_cq);
  REQUIRE(sent.status == WcStatus::success);
  REQUIRE(sent.opcode == WcOpcode::send);
  REQUIRE(sent.wr_id == 8);
  REQUIRE(sent.byte_count == contents.size());
}

}  // namespace

TEST_CASE("RC messages of 0 bytes to 8 MiB arrive whole over TCP, both ways") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  const size_t largest = (8 << 20) + 1;
  RcParty a(one, {.memory = largest});
  RcParty b(other, {.memory = largest});
  connect(a, b, other);
  const std::vector<std::byte> contents = pattern(largest, 1);
  for (size_t size : {size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{64}, size_t{1423},
                      size_t{4096}, size_t{65459}, size_t{65535}, size_t{65536}, size_t{262144},
                      size_t{1000003}, size_t{8} << 20, largest}) {
    INFO(size);
    check_message(a, b, std::span(contents).first(size));
    check_message(b, a, std::span(contents).last(size));
  }
}

TEST_CASE("RC messages of every length around the segment arrive whole") {
  World world;
  RcParty a(world.add_device(), {.memory = 1024});
  RcParty b(world.add_device(), {.memory = 1024});
  join(a, b, llp::memory_stream_pair(4096, 256));  // an FPDU carries 232 bytes
  const std::vector<std::byte> contents = pattern(1024, 2);
  for (size_t size = 0; size <= 700; ++size) {
    INFO(size);
    a.fill(std::span(contents).first(size));
    REQUIRE_FALSE(b.post_recv(size, 0, 1024));
    REQUIRE_FALSE(a.send(0, size));
    world.settle();
    const auto received = drain(b.recv_cq);
    REQUIRE(received.size() == 1);
    REQUIRE(received[0].status == WcStatus::success);
    REQUIRE(received[0].byte_count == size);
    REQUIRE(same(b.bytes(0, size), std::span(contents).first(size)));
    REQUIRE(drain(a.send_cq).size() == 1);
  }
}

TEST_CASE("RC gathers and scatters over uneven lists, with empty elements") {
  World world;
  const QueuePairCapacity lists{.max_send_sge = 6, .max_recv_sge = 6};
  RcParty a(world.add_device(), {.memory = 2000, .capacity = lists});
  RcParty b(world.add_device(), {.memory = 2000, .capacity = lists});
  join(a, b, llp::memory_stream_pair(100, 256));
  a.fill(pattern(2000, 3));
  const std::array from{a.mr->sge(1500, 1), a.mr->sge(0, 0), a.mr->sge(700, 333),
                        a.mr->sge(10, 600), Sge{},           a.mr->sge(1990, 10)};
  const std::array to{b.mr->sge(0, 0), b.mr->sge(900, 500), b.mr->sge(0, 3),
                      Sge{},           b.mr->sge(100, 440), b.mr->sge(600, 100)};
  std::vector<std::byte> sent;
  for (const Sge& sge : from) {
    const auto* at = static_cast<const std::byte*>(sge.address);
    sent.insert(sent.end(), at, at + sge.length);
  }
  REQUIRE_FALSE(b.qp.post_recv({.wr_id = 1, .sges = to}));
  REQUIRE_FALSE(a.qp.post_send({.wr_id = 2, .sges = from}));
  world.settle();
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == 1);
  REQUIRE(received[0].byte_count == 944);
  std::vector<std::byte> placed;
  for (const Sge& sge : to) {
    const auto* at = static_cast<const std::byte*>(sge.address);
    placed.insert(placed.end(), at, at + sge.length);
  }
  placed.resize(944);
  CHECK(same(placed, sent));
}

TEST_CASE("RC lists of 64 elements pass through bursts of many FPDUs") {
  World world;
  const QueuePairCapacity lists{.max_send_sge = 64, .max_recv_sge = 1};
  RcParty a(world.add_device(), {.memory = 6400, .capacity = lists});
  RcParty b(world.add_device(), {.memory = 64000, .capacity = lists});
  join(a, b, llp::memory_stream_pair(1 << 20, 256));
  a.fill(pattern(6400, 4));
  std::vector<Sge> from;
  for (size_t i = 0; i < 64; ++i) from.push_back(a.mr->sge((63 - i) * 100, 100));
  b.post_receives(10, 6400);
  for (uint64_t i = 0; i < 10; ++i) REQUIRE_FALSE(a.qp.post_send({.wr_id = i, .sges = from}));
  world.settle();
  REQUIRE(drain(b.recv_cq).size() == 10);
  for (size_t message = 0; message < 10; ++message)
    for (size_t i = 0; i < 64; ++i)
      REQUIRE(same(b.bytes(message * 6400 + i * 100, 100), a.bytes((63 - i) * 100, 100)));
}

TEST_CASE("RC sends without the signaled flag complete silently") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device());
  join(a, b, llp::memory_stream_pair());
  b.post_receives(3, 100);
  REQUIRE_FALSE(a.send(0, 10, 1, SendFlags::none));
  REQUIRE_FALSE(a.send(0, 10, 2, SendFlags::signaled));
  REQUIRE_FALSE(a.send(0, 10, 3, SendFlags::none));
  world.settle();
  const auto sent = drain(a.send_cq);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].wr_id == 2);
  CHECK(drain(b.recv_cq).size() == 3);
  CHECK(a.qp.query().posted_sends == 0);
}

TEST_CASE("RC inline data may be overwritten at once, and needs no region") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device());
  auto ends = llp::memory_stream_pair();
  b.post_receives(1, 100);
  // The responder may not send before it was spoken to, so the data waits in the queue.
  b.impl().start(negotiated(std::move(ends.second), true));
  a.impl().start(negotiated(std::move(ends.first), false));
  std::vector<std::byte> words = text("inline");
  const std::array sges{Sge{words.data(), 2, 0}, Sge{words.data() + 2, 4, 0}};
  REQUIRE_FALSE(a.qp.post_send({.sges = sges, .flags = SendFlags::inline_data}));
  std::fill(words.begin(), words.end(), std::byte{0xff});
  a.post_receives(1, 100);
  REQUIRE_FALSE(b.send(0, 1));
  world.settle();
  REQUIRE(drain(b.recv_cq).size() == 1);
  CHECK(same(b.bytes(0, 6), text("inline")));
}

TEST_CASE("RC completions tell which messages were sent solicited") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device());
  join(a, b, llp::memory_stream_pair(1 << 16, 256));
  b.post_receives(3, 1000);
  REQUIRE_FALSE(a.send(0, 900, 1, SendFlags::solicited));
  REQUIRE_FALSE(a.send(0, 900, 2, SendFlags::none));
  REQUIRE_FALSE(a.send(0, 0, 3, SendFlags::solicited));
  world.settle();
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == 3);
  CHECK(received[0].solicited);
  CHECK_FALSE(received[1].solicited);
  CHECK(received[2].solicited);
}

TEST_CASE("RC survives a stream that takes and gives only a few bytes at a time") {
  const size_t room = GENERATE(1U, 2U, 7U, 19U, 20U, 21U, 64U);
  CAPTURE(room);
  World world;
  RcParty a(world.add_device(), {.memory = 4096});
  RcParty b(world.add_device(), {.memory = 4096});
  join(a, b, llp::memory_stream_pair(room, 256));
  const std::vector<std::byte> contents = pattern(1000, room);
  a.fill(contents);
  b.fill(contents, 2000);
  for (uint64_t i = 0; i < 3; ++i) {
    REQUIRE_FALSE(b.post_recv(i, i * 300, 300));
    REQUIRE_FALSE(a.post_recv(i, 1000 + i * 300, 300));
    REQUIRE_FALSE(a.send(i * 300, 300 - i, i));
    REQUIRE_FALSE(b.send(2000 + i * 300, 300 - i, i));
  }
  // Bytes alone are no work, so the devices may seem to rest in between.
  for (int i = 0; i < 20000; ++i) world.settle();
  REQUIRE(drain(a.recv_cq).size() == 3);
  REQUIRE(drain(b.recv_cq).size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(same(b.bytes(i * 300, 300 - i), std::span(contents).subspan(i * 300, 300 - i)));
    CHECK(same(a.bytes(1000 + i * 300, 300 - i), std::span(contents).subspan(i * 300, 300 - i)));
  }
  CHECK(world.devices[0].counter("rc_tx_fpdus") == 6);
  CHECK(world.devices[1].counter("rc_rx_fpdus") == 6);
}

TEST_CASE("RC streams whose bytes dribble in random pieces deliver the same") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one, {.memory = 200000});
  RcParty b(other, {.memory = 200000});
  auto ends = socket_streams();
  llp::StreamImpairment impairment;
  impairment.max_chunk = 1000;
  ends.second = std::make_unique<llp::ImpairedStream>(std::move(ends.second), impairment);
  join(a, b, std::move(ends));
  const std::vector<std::byte> contents = pattern(200000, 6);
  for (size_t size : {size_t{1}, size_t{5000}, size_t{70000}, size_t{200000}})
    check_message(a, b, std::span(contents).first(size));
}

TEST_CASE("RC over small socket buffers moves large messages both ways at once") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  const size_t size = 2 << 20;
  RcParty a(one, {.memory = 2 * size});
  RcParty b(other, {.memory = 2 * size});
  join(a, b, socket_streams(4096));
  a.fill(pattern(size, 7));
  b.fill(pattern(size, 8));
  REQUIRE_FALSE(a.post_recv(1, size, size));
  REQUIRE_FALSE(b.post_recv(1, size, size));
  REQUIRE_FALSE(a.send(0, size));
  REQUIRE_FALSE(b.send(0, size));
  REQUIRE(next(b.recv_cq).status == WcStatus::success);
  REQUIRE(next(a.recv_cq).status == WcStatus::success);
  CHECK(same(a.bytes(size, size), b.bytes(0, size)));
  CHECK(same(b.bytes(size, size), a.bytes(0, size)));
  CHECK(next(a.send_cq).status == WcStatus::success);
  CHECK(next(b.send_cq).status == WcStatus::success);
}

TEST_CASE("RC keeps the order of thousands of messages in both directions") {
  const Device device = Device::open("127.0.0.1");
  RcParty a(device, {.memory = 64 * 256});
  RcParty b(device, {.memory = 64 * 256});
  connect(a, b, device);
  constexpr uint64_t kMessages = 5000;
  auto echo = std::async(std::launch::async, [&b] {
    for (uint64_t slot = 0; slot < 64; ++slot)
      if (b.post_recv(slot, slot * 256, 256)) return false;
    for (uint64_t i = 0; i < kMessages; ++i) {
      const auto came = b.recv_cq.wait(kPatience);
      if (!came || came->status != WcStatus::success) return false;
      const size_t at = came->wr_id * 256;
      if (b.send(at, came->byte_count, came->wr_id)) return false;
      const auto sent = b.send_cq.wait(kPatience);
      if (!sent || b.post_recv(sent->wr_id, sent->wr_id * 256, 256)) return false;
    }
    return true;
  });
  uint64_t posted = 0;
  const auto post = [&] {
    const uint64_t slot = posted % 32;
    std::memcpy(&a.memory[slot * 256], &posted, 8);
    REQUIRE_FALSE(a.post_recv(slot, (32 + slot) * 256, 256));
    REQUIRE_FALSE(a.send(slot * 256, 8 + posted % 200, slot));
    ++posted;
  };
  for (uint64_t i = 0; i < kMessages; ++i) {
    while (posted < kMessages && posted < i + 32) post();
    const WorkCompletion came = next(a.recv_cq);
    REQUIRE(came.status == WcStatus::success);
    REQUIRE(came.byte_count == 8 + i % 200);
    uint64_t number = 0;
    std::memcpy(&number, &a.memory[(32 + came.wr_id) * 256], 8);
    REQUIRE(number == i);
    REQUIRE(next(a.send_cq).wr_id == i % 32);
  }
  CHECK(echo.get());
}

TEST_CASE("RC completions that find the queue full wait and are not lost") {
  World world;
  RcParty a(world.add_device(), {.entries = 2});
  RcParty b(world.add_device(), {.entries = 2});
  join(a, b, llp::memory_stream_pair());
  b.post_receives(50, 10);
  for (uint64_t i = 0; i < 50; ++i) REQUIRE_FALSE(a.send(0, 10, i));
  uint64_t sent = 0;
  uint64_t received = 0;
  for (int round = 0; round < 1000; ++round) {
    world.settle();
    for (const WorkCompletion& completion : drain(a.send_cq)) REQUIRE(completion.wr_id == sent++);
    for (const WorkCompletion& completion : drain(b.recv_cq))
      REQUIRE(completion.wr_id == received++);
  }
  CHECK(sent == 50);
  CHECK(received == 50);
}

TEST_CASE("RC without CRCs carries the same messages") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one);
  RcParty b(other);
  connect(a, b, other, {.crc = false}, {.crc = false});
  const std::vector<std::byte> contents = pattern(50000, 9);
  check_message(a, b, contents);
  check_message(b, a, contents);
}

TEST_CASE("RC carries one message of hundreds of megabytes") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
#if defined(__SANITIZE_THREAD__)
  const size_t size = size_t{16} << 20;
#else
  const size_t size = size_t{256} << 20;
#endif
  RcParty a(one, {.memory = size});
  RcParty b(other, {.memory = size});
  connect(a, b, other);
  a.fill(pattern(size, 10));
  REQUIRE_FALSE(b.post_recv(1, 0, size));
  REQUIRE_FALSE(a.send(0, size));
  const WorkCompletion received = next(b.recv_cq);
  REQUIRE(received.status == WcStatus::success);
  REQUIRE(received.byte_count == size);
  CHECK(same(a.memory, b.memory));
}

TEST_CASE("RC refuses what it cannot carry when it is posted") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device());
  const Sge byte = a.mr->sge(0, 1);
  CHECK(a.qp.post_send({.sges = {&byte, 1}}) == Errc::invalid_state);
  CHECK(a.qp.state() == QpState::init);
  join(a, b, llp::memory_stream_pair());
  CHECK(a.qp.state() == QpState::rts);
  const std::array<Sge, 5> five{byte, byte, byte, byte, byte};
  CHECK(a.qp.post_send({.sges = five}) == Errc::too_many_sges);
  CHECK(a.qp.post_recv({.sges = five}) == Errc::too_many_sges);
  const Sge huge{a.memory.data(), (1U << 30) + 1, a.mr->lkey()};
  CHECK(a.qp.post_send({.sges = {&huge, 1}}) == Errc::message_too_large);
  const Sge long_inline{a.memory.data(), 65, 0};
  CHECK(a.qp.post_send({.sges = {&long_inline, 1}, .flags = SendFlags::inline_data}) ==
        Errc::inline_too_large);
}

}  // namespace diwarp::test
