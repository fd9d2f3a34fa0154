// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <map>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A queue pair with receives, and someone who sends it nonsense.
struct Scene {
  explicit Scene(const PartyOptions& options = {}) : target(device, options) {
    target.post_receives(32, 100);
  }

  uint64_t count(const char* counter) const { return device.counter(counter); }
  /// Whether the queue pair still does its work.
  bool goes_on() {
    const Segment good{.incarnation = 99, .msn = next_msn_++, .payload = pattern(50, next_msn_)};
    stranger.send(target.address(), good);
    world.settle();
    const auto completions = drain(target.recv_cq);
    return completions.size() == 1 && completions[0].status == WcStatus::success &&
           same(target.bytes(completions[0].wr_id * 100, 50), good.payload);
  }

  World world;
  Device& device = world.add_device();
  Party target;
  Stranger stranger{world};

 private:
  uint32_t next_msn_ = 0;
};

struct Wrong {
  const char* what;
  Segment segment;
  const char* counter;
};

void seal(std::vector<std::byte>& datagram) {
  const size_t covered = datagram.size() - 4;
  const uint32_t crc = castagnoli(std::span(datagram).first(covered));
  for (size_t k = 0; k < 4; ++k) datagram[covered + k] = static_cast<std::byte>(crc >> (8 * k));
}

std::vector<Wrong> wrong_segments() {
  const auto payload = pattern(50, 1);
  const auto with = [&](const char* what, const char* counter,
                        const std::function<void(Segment&)>& change) {
    Wrong wrong{what, {.msn = 5, .payload = payload}, counter};
    change(wrong.segment);
    return wrong;
  };
  return {
      with("version 0", "drop_version", [](Segment& s) { s.version = 0; }),
      with("version 1", "drop_version", [](Segment& s) { s.version = 1; }),
      with("version 3", "drop_version", [](Segment& s) { s.version = 3; }),
      with("class RD", "drop_class", [](Segment& s) { s.datagram_class = 1; }),
      with("class control", "drop_control", [](Segment& s) { s.datagram_class = 2; }),
      with("class 3", "drop_class", [](Segment& s) { s.datagram_class = 3; }),
      with("an unknown flag", "drop_flags", [](Segment& s) { s.flags = 0x80; }),
      with("a reserved bit of the prefix", "drop_reserved", [](Segment& s) { s.reserved = 1; }),
      with("a reserved bit of DDP", "drop_reserved", [](Segment& s) { s.ddp_reserved = 1; }),
      with("DDP version 0", "drop_ddp_version", [](Segment& s) { s.ddp_version = 0; }),
      with("DDP version 2", "drop_ddp_version", [](Segment& s) { s.ddp_version = 2; }),
      with("RDMAP version 0", "drop_rdmap_version", [](Segment& s) { s.rdmap_version = 0; }),
      with("an RDMA Write", "drop_opcode", [](Segment& s) { s.opcode = kRdmaWrite; }),
      with("an Atomic Request", "drop_opcode", [](Segment& s) { s.opcode = 10; }),
      with("a Terminate", "drop_opcode", [](Segment& s) { s.opcode = 7, s.queue_number = 2; }),
      with("queue 1", "drop_queue_number", [](Segment& s) { s.queue_number = 1; }),
      with("queue 2", "drop_queue_number", [](Segment& s) { s.queue_number = 2; }),
      with("a solicited flag without its opcode", "drop_flags",
           [](Segment& s) { s.solicited = true, s.opcode = 3; }),
      with("a solicited opcode without its flag", "drop_flags", [](Segment& s) { s.opcode = 5; }),
      with("a byte beyond 1 GiB", "drop_oversized", [](Segment& s) { s.offset = (1U << 30) - 49; }),
      with("an offset near 2^32", "drop_oversized", [](Segment& s) { s.offset = 0xFFFFFFFFU; }),
      with("a CRC with one wrong bit", "drop_crc", [](Segment& s) { s.crc_error = 1; }),
      with("a CRC with another wrong bit", "drop_crc", [](Segment& s) { s.crc_error = 1U << 31; }),
      with("a Q_Key", "drop_q_key", [](Segment& s) { s.q_key = 1; }),
  };
}

}  // namespace

TEST_CASE("a malformed segment is dropped under its own reason, and the queue pair goes on") {
  Scene scene;
  for (const Wrong& wrong : wrong_segments()) {
    CAPTURE(wrong.what);
    const uint64_t counted = scene.count(wrong.counter);
    const uint64_t dropped = drops(scene.device);
    const std::vector<std::byte> before = scene.target.memory;
    scene.stranger.send(scene.target.address(), wrong.segment);
    scene.world.settle();
    CHECK(scene.count(wrong.counter) == counted + 1);
    CHECK(drops(scene.device) == dropped + 1);
    CHECK(drain(scene.target.recv_cq).empty());
    CHECK(scene.target.memory == before);
    REQUIRE_FALSE(scene.target.post_recv(0, 0, 100));
    CHECK(scene.goes_on());
  }
}

TEST_CASE("a datagram cut anywhere is dropped") {
  Scene scene;
  const auto whole = to_bytes({.msn = 5, .payload = pattern(50, 1)});
  for (size_t length = 0; length < whole.size(); ++length)
    scene.stranger.send(scene.target.address(),
                        {whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)});
  scene.world.settle();
  CHECK(scene.count("drop_truncated") == 12);  // prefix and CRC
  CHECK(scene.count("drop_crc") == whole.size() - 12);
  CHECK(drain(scene.target.recv_cq).empty());
  CHECK(scene.goes_on());
}

TEST_CASE("every flipped bit of a datagram is noticed") {
  Scene scene;
  auto datagram = to_bytes({.msn = 5, .payload = pattern(50, 1)});
  for (size_t bit = 0; bit < datagram.size() * 8; ++bit) {
    datagram[bit / 8] ^= std::byte{1} << (bit % 8);
    scene.stranger.send(scene.target.address(), datagram);
    datagram[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  scene.world.settle();
  CHECK(drops(scene.device) == datagram.size() * 8);
  CHECK(drain(scene.target.recv_cq).empty());
  CHECK(scene.goes_on());
}

TEST_CASE("random datagrams, sealed or not, deliver nothing that was not sent") {
  Scene scene({.datagram = {.max_open_messages = 4}});
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    auto datagram = pattern(random.below(120), random.next());
    if (datagram.size() >= kOverhead) {
      // Right up to somewhere, so that every check is reached, or all through the headers. Offset 3
      // makes it a part of a message whose beginning never comes.
      const auto good = to_bytes({.incarnation = 7, .msn = static_cast<uint32_t>(i), .offset = 3});
      const size_t right = random.below(23);
      std::copy_n(good.begin(), right == 22 ? 26 : right, datagram.begin());
      if (random.below(4) != 0) seal(datagram);
    }
    scene.stranger.send(scene.target.address(), datagram);
    if (i % 64 == 0) scene.world.advance(1ms);
  }
  scene.world.advance(1s);
  CHECK(scene.count("rx_datagrams") == 20000);
  for (const char* counter : {"drop_truncated", "drop_version", "drop_reserved", "drop_crc",
                              "drop_opcode", "drop_queue_number", "message_timeouts"}) {
    CAPTURE(counter);
    CHECK(scene.count(counter) != 0);
  }
  CHECK(drain(scene.target.recv_cq).empty());
  CHECK(scene.target.qp.query().posted_receives == 32);
  CHECK(scene.goes_on());
}

TEST_CASE("a queue pair takes what has its Q_Key, and nothing else") {
  Scene scene({.datagram = {.q_key = 0x80000001}});
  scene.stranger.send(scene.target.address(), {.msn = 1, .payload = pattern(10, 1)});
  scene.stranger.send(scene.target.address(), {.msn = 2, .q_key = 1, .payload = pattern(10, 1)});
  scene.world.settle();
  CHECK(scene.count("drop_q_key") == 2);
  CHECK(drain(scene.target.recv_cq).empty());

  Party sender(scene.world.add_device());
  const Sge sge = sender.mr.sge(0, 5000);
  REQUIRE_FALSE(sender.qp.post_send({.sges = {&sge, 1}, .destination = scene.target.address()}));
  scene.world.settle();
  CHECK(scene.count("drop_q_key") == 6);
  const Sge small = sender.mr.sge(0, 100);
  REQUIRE_FALSE(sender.qp.post_send(
      {.sges = {&small, 1}, .destination = scene.target.address(), .q_key = 0x80000001}));
  scene.world.settle();
  CHECK(drain(scene.target.recv_cq).size() == 1);
  CHECK(scene.target.qp.query().q_key == 0x80000001);
}

TEST_CASE("a queue pair that is not in rts drops what comes and keeps its receives") {
  Scene scene;
  const Segment message{.msn = 1, .payload = pattern(10, 1)};
  const auto send = [&] {
    scene.stranger.send(scene.target.address(), message);
    scene.world.settle();
  };
  scene.target.qp.modify(QpState::error);
  drain(scene.target.recv_cq);
  send();
  CHECK(scene.count("drop_state") == 1);
  scene.target.qp.modify(QpState::reset);
  send();
  CHECK(scene.count("drop_state") == 2);
  scene.target.qp.modify(QpState::init);
  scene.target.post_receives(2, 100);
  send();
  CHECK(scene.count("drop_state") == 3);
  CHECK(drain(scene.target.recv_cq).empty());
  scene.target.qp.modify(QpState::rts);
  send();
  CHECK(drain(scene.target.recv_cq).size() == 1);
  CHECK(scene.count("drop_state") == 3);
}

TEST_CASE("an incomplete message does not outlive the error state") {
  Scene scene;
  scene.stranger.send(scene.target.address(),
                      {.msn = 1, .offset = 0, .last = false, .payload = pattern(10, 1)});
  scene.world.settle();
  scene.target.qp.modify(QpState::error);
  const auto flushed = drain(scene.target.recv_cq);
  CHECK(flushed.size() == 32);  // the one it held among them
  for (const WorkCompletion& completion : flushed)
    CHECK(completion.status == WcStatus::wr_flush_error);
  scene.target.qp.modify(QpState::reset);
  scene.target.qp.modify(QpState::init);
  scene.target.qp.modify(QpState::rts);
  scene.target.post_receives(4, 100);
  scene.world.advance(1s);
  CHECK(scene.count("message_timeouts") == 0);
  scene.stranger.send(scene.target.address(),
                      {.msn = 1, .offset = 10, .last = true, .payload = pattern(10, 1)});
  scene.world.settle();
  CHECK(drain(scene.target.recv_cq).empty());
}
