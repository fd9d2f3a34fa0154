// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("the requests that may be posted depend on the state of the queue pair") {
  World world;
  Party party(world.add_device());
  Party other(world.add_device());
  const auto send = [&] { return party.send(other.address(), 0, 10); };
  const auto receive = [&] { return party.post_recv(0, 0, 10); };
  REQUIRE(party.qp.state() == QpState::rts);
  CHECK_FALSE(receive());
  CHECK_FALSE(send());
  party.qp.modify(QpState::error);
  CHECK(party.qp.state() == QpState::error);
  CHECK_FALSE(receive());
  CHECK_FALSE(send());
  party.qp.modify(QpState::reset);
  CHECK(party.qp.state() == QpState::reset);
  CHECK(receive() == Errc::invalid_state);
  CHECK(send() == Errc::invalid_state);
  party.qp.modify(QpState::init);
  CHECK_FALSE(receive());
  CHECK(send() == Errc::invalid_state);
  party.qp.modify(QpState::rts);
  CHECK_FALSE(receive());
  CHECK_FALSE(send());
  CHECK(party.qp.query().state == QpState::rts);
}

TEST_CASE("only the moves in the table of states are possible by hand") {
  using enum QpState;
  World world;
  Party party(world.add_device());
  const auto bring_to = [&](QpState state) {
    party.qp.modify(error);
    if (state == error) return;
    party.qp.modify(reset);
    if (state == reset) return;
    party.qp.modify(init);
    if (state == rts) party.qp.modify(rts);
  };
  const std::vector<std::pair<QpState, QpState>> legal = {
      {reset, init}, {reset, error}, {init, rts},    {init, reset},  {init, error},
      {rts, reset},  {rts, error},   {error, reset}, {error, error},
  };
  for (QpState from : {reset, init, rts, error}) {
    for (QpState to : {reset, init, rts, closing, error}) {
      CAPTURE(to_string(from), to_string(to));
      bring_to(from);
      const bool allowed =
          std::find(legal.begin(), legal.end(), std::pair(from, to)) != legal.end();
      const std::error_code code = refusal([&] { party.qp.modify(to); });
      CHECK(code == (allowed ? std::error_code() : make_error_code(Errc::invalid_state)));
      CHECK(party.qp.state() == (allowed ? to : from));
    }
  }
}

namespace {

/// Tells how many datagrams each burst had that went through it.
class BurstWatcher final : public llp::DatagramLink {
 public:
  BurstWatcher(World::Link link, std::vector<size_t>& bursts)
      : link_(std::move(link)), bursts_(bursts) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    bursts_.push_back(burst.size());
    return link_->send(burst);
  }
  size_t receive(llp::ReceiveBatch& batch) override { return link_->receive(batch); }
  size_t max_datagram(const Address& to) override { return link_->max_datagram(to); }
  Address local_address() const override { return link_->local_address(); }
  void on_ready(std::function<void()> callback) override { link_->on_ready(std::move(callback)); }

 private:
  World::Link link_;
  std::vector<size_t>& bursts_;
};

/// Sends of 10 bytes each; wr_id counts from 0.
struct Requests {
  Requests(Party& party, const Address& to, size_t count) : sge(party.mr.sge(0, 10)) {
    for (uint64_t id = 0; id < count; ++id)
      list.push_back({.wr_id = id, .sges = {&sge, 1}, .destination = to});
  }
  Sge sge;
  std::vector<SendWorkRequest> list;
};

}  // namespace

TEST_CASE("requests posted together leave together") {
  World world;
  std::vector<size_t> bursts;
  Party party(world.add_device(
      [&](World::Link link) { return std::make_unique<BurstWatcher>(std::move(link), bursts); }));
  Party other(world.add_device());
  other.post_receives(16, 10);
  Requests requests(party, other.address(), 16);
  size_t posted = 0;
  CHECK_FALSE(party.qp.post_sends(requests.list, posted));
  CHECK(posted == 16);
  world.settle();
  CHECK(bursts == std::vector<size_t>{16});
  CHECK(drain(other.recv_cq).size() == 16);
  const auto sends = drain(party.send_cq);
  REQUIRE(sends.size() == 16);
  for (uint64_t i = 0; i < 16; ++i) CHECK(sends[i].wr_id == i);
}

TEST_CASE("of requests posted together, those after one that fails are not posted") {
  World world;
  Party party(world.add_device(), {.capacity = {.max_send_wr = 4}});
  Party other(world.add_device());
  other.post_receives(16, 10);
  size_t posted = 99;
  SECTION("for what it is") {
    Requests requests(party, other.address(), 4);
    requests.list[2].destination = {};
    CHECK(party.qp.post_sends(requests.list, posted) == Errc::invalid_destination);
    CHECK(posted == 2);
  }
  SECTION("for want of room") {
    Requests requests(party, other.address(), 6);
    CHECK(party.qp.post_sends(requests.list, posted) == Errc::queue_full);
    CHECK(posted == 4);
  }
  SECTION("for the state") {
    Requests requests(party, other.address(), 2);
    party.qp.modify(QpState::reset);
    CHECK(party.qp.post_sends(requests.list, posted) == Errc::invalid_state);
    CHECK(posted == 0);
    CHECK_FALSE(party.qp.post_sends({}, posted));
  }
  world.settle();
  CHECK(drain(other.recv_cq).size() == posted);
  CHECK(drain(party.send_cq).size() == posted);
}

TEST_CASE("the error state flushes what is posted, in order") {
  World world;
  Party party(world.add_device(), {.datagram = {.max_rate = 1}});
  Party other(world.add_device());
  for (uint64_t id = 0; id < 5; ++id)
    REQUIRE_FALSE(party.send(other.address(), 0, 100, id, SendFlags::none));
  for (uint64_t id = 0; id < 5; ++id) REQUIRE_FALSE(party.post_recv(100 + id, 0, 10));
  party.qp.modify(QpState::error);
  const auto sends = drain(party.send_cq);
  REQUIRE(sends.size() == 4);  // the first went out, unsignaled
  for (uint64_t i = 0; i < 4; ++i) {
    CHECK(sends[i].wr_id == i + 1);
    CHECK(sends[i].status == WcStatus::wr_flush_error);
    CHECK(sends[i].opcode == WcOpcode::send);
    CHECK(sends[i].qp_number == party.qp.number());
  }
  const auto receives = drain(party.recv_cq);
  REQUIRE(receives.size() == 5);
  for (uint64_t i = 0; i < 5; ++i) {
    CHECK(receives[i].wr_id == 100 + i);
    CHECK(receives[i].status == WcStatus::wr_flush_error);
    CHECK(receives[i].opcode == WcOpcode::recv);
    CHECK(receives[i].qp_number == party.qp.number());
  }
  party.qp.modify(QpState::error);  // once more changes nothing
  CHECK(drain(party.send_cq).empty());
  CHECK(party.qp.query().posted_sends == 0);
  CHECK(party.qp.query().posted_receives == 0);
}

TEST_CASE("reset drops what is posted and reports nothing") {
  World world;
  Party party(world.add_device(),
              {.capacity = {.max_send_wr = 4, .max_recv_wr = 4}, .datagram = {.max_rate = 1}});
  Party other(world.add_device());
  for (int life = 0; life < 3; ++life) {
    for (int i = 0; i < 4; ++i) REQUIRE_FALSE(party.post_recv(0, 0, 10));
    CHECK(party.post_recv(0, 0, 10) == Errc::queue_full);
    while (!party.send(other.address(), 0, 100, 0, SendFlags::none)) {
    }
    party.qp.modify(QpState::reset);
    CHECK(drain(party.send_cq).empty());
    CHECK(drain(party.recv_cq).empty());
    CHECK(party.qp.query().posted_sends == 0);
    CHECK(party.qp.query().posted_receives == 0);
    party.qp.modify(QpState::init);
    party.qp.modify(QpState::rts);
  }
  party.qp.set_max_rate(0);
  other.post_receives(1, 100);
  REQUIRE_FALSE(party.send(other.address(), 0, 100, 5));
  world.settle();
  CHECK(drain(party.send_cq).size() == 1);
  CHECK(drain(other.recv_cq).size() == 1);
}

TEST_CASE("full queues say so, and take more as soon as there is room") {
  World world;
  const uint32_t depth = GENERATE(1U, 4U, 5U);  // depths are rounded up to a power of two
  const uint32_t rounded = depth == 5 ? 8 : depth;
  Party party(world.add_device(), {.capacity = {.max_send_wr = depth, .max_recv_wr = depth},
                                   .datagram = {.max_rate = 1}});
  Party other(world.add_device());
  other.post_receives(100, 100);
  uint32_t sends = 0;
  while (!party.send(other.address(), 0, 100, sends)) ++sends;
  CHECK(party.send(other.address(), 0, 100) == Errc::queue_full);
  CHECK(sends == rounded + 1);  // the first is out and reported
  CHECK(party.qp.query().posted_sends == rounded);
  party.qp.set_max_rate(0);
  world.settle();
  CHECK(drain(party.send_cq).size() == sends);
  CHECK_FALSE(party.send(other.address(), 0, 100));

  uint32_t receives = 0;
  while (!party.post_recv(receives, 0, 100)) ++receives;
  CHECK(party.post_recv(0, 0, 100) == Errc::queue_full);
  CHECK(receives == rounded);
  REQUIRE_FALSE(other.send(party.address(), 0, 10));
  world.settle();
  REQUIRE(drain(party.recv_cq).size() == 1);
  CHECK_FALSE(party.post_recv(0, 0, 100));
  CHECK(party.post_recv(0, 0, 100) == Errc::queue_full);
}

TEST_CASE("a request that asks for too much is refused when it is posted") {
  World world;
  Party party(world.add_device(),
              {.capacity = {.max_send_sge = 2, .max_recv_sge = 3, .max_inline_data = 16}});
  Party other(world.add_device());
  const std::vector<Sge> sges(4, party.mr.sge(0, 4));
  const auto send = [&](size_t count, SendFlags flags) {
    return party.qp.post_send(
        {.sges = std::span(sges).first(count), .flags = flags, .destination = other.address()});
  };
  CHECK_FALSE(send(2, SendFlags::none));
  CHECK(send(3, SendFlags::none) == Errc::too_many_sges);
  CHECK_FALSE(send(4, SendFlags::inline_data));  // 16 bytes
  const Sge long_one = party.mr.sge(0, 17);
  CHECK(party.qp.post_send({.sges = {&long_one, 1},
                            .flags = SendFlags::inline_data,
                            .destination = other.address()}) == Errc::inline_too_large);
  CHECK_FALSE(party.qp.post_recv({.sges = std::span(sges).first(3)}));
  CHECK(party.qp.post_recv({.sges = sges}) == Errc::too_many_sges);
  const std::array<Sge, 2> huge = {Sge{party.memory.data(), 0xFFFFFFFF, party.mr.lkey()},
                                   Sge{party.memory.data(), 1, party.mr.lkey()}};
  CHECK(party.qp.post_recv({.sges = huge}) == Errc::message_too_large);
  CHECK_FALSE(party.qp.post_recv({.sges = std::span(huge).first(1)}));
}

TEST_CASE("an SGE longer than an SGE can say is refused when posted, not cut") {
  World world;
  Party party(world.add_device());
  Party other(world.add_device());
  const Sge sge = party.mr.sge(0, (size_t{1} << 32) + 10);
  CHECK(party.qp.post_send({.sges = {&sge, 1}, .destination = other.address()}) ==
        Errc::message_too_large);
}

TEST_CASE("a destination that cannot be reached by any datagram is refused") {
  World world;
  Party party(world.add_device());
  const auto send = [&](const char* to) { return party.send(Address::parse(to), 0, 10); };
  CHECK(party.send(Address(), 0, 10) == Errc::invalid_destination);
  CHECK(send("10.0.0.2") == Errc::invalid_destination);  // no port
  CHECK(send("0.0.0.0:5") == Errc::invalid_destination);
  CHECK(send("[::1]:5") == Errc::invalid_destination);  // of the other family
  CHECK(send("[::ffff:10.0.0.2]:5") == Errc::invalid_destination);
  CHECK_FALSE(send("10.0.0.2:5"));
}

TEST_CASE("sending to a port that nobody listens to succeeds: nobody can know") {
  World world;
  Party party(world.add_device());
  REQUIRE_FALSE(party.send(Address::parse("10.0.0.77:5"), 0, 10, 3));
  world.settle();
  const auto sends = drain(party.send_cq);
  REQUIRE(sends.size() == 1);
  CHECK(sends[0].status == WcStatus::success);
}

TEST_CASE("a queue pair cannot be made with values out of range") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  const QueuePairInit good{.type = QpType::ud, .send_cq = cq, .recv_cq = cq};
  const auto code = [&](const std::function<void(QueuePairInit&)>& change) {
    QueuePairInit init = good;
    change(init);
    return refusal([&] { QueuePair(pd, init); });
  };
  CHECK_FALSE(code([](QueuePairInit&) {}));
  using Init = QueuePairInit;
  const std::vector<std::function<void(Init&)>> wrong = {
      [](Init& init) { init.capacity.max_send_wr = 0; },
      [](Init& init) { init.capacity.max_send_wr = 65537; },
      [](Init& init) { init.capacity.max_recv_wr = 0; },
      [](Init& init) { init.capacity.max_recv_wr = 65537; },
      [](Init& init) { init.capacity.max_send_sge = 0; },
      [](Init& init) { init.capacity.max_send_sge = 65; },
      [](Init& init) { init.capacity.max_recv_sge = 0; },
      [](Init& init) { init.capacity.max_recv_sge = 65; },
      [](Init& init) { init.capacity.max_inline_data = 1025; },
      [](Init& init) { init.send_cq = {}; },
      [](Init& init) { init.recv_cq = {}; },
      [](Init& init) { init.datagram.segment = 63; },
      [](Init& init) { init.datagram.segment = 65508; },
      [](Init& init) { init.datagram.max_open_messages = 0; },
      [](Init& init) { init.datagram.max_open_per_source = 0; },
      [](Init& init) { init.datagram.max_sources = 0; },
      [](Init& init) { init.datagram.max_sources_per_address = 0; },
      [](Init& init) { init.datagram.max_unproven_sources = 0; },
      [](Init& init) { init.datagram.max_source_memory = 65535; },
      [](Init& init) { init.datagram.source_timeout = 0s; },
      [](Init& init) { init.datagram.closed_per_source = 0; },
      [](Init& init) { init.datagram.refused_per_source = 0; },
      [](Init& init) { init.datagram.stag_misses_per_source = 0; },
      [](Init& init) { init.datagram.stag_misses = 0; },
      [](Init& init) { init.datagram.message_timeout = 0ns; },
      [](Init& init) { init.datagram.message_timeout = -1s; },
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    CAPTURE(i);
    CHECK(code(wrong[i]) == Errc::invalid_argument);
  }
  CHECK(device.query().queue_pairs == 0);
}

TEST_CASE("a completion queue of another device is refused") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  const CompletionQueue own(device, 16);
  const CompletionQueue foreign(world.add_device(), 16);
  CHECK(refusal([&] { QueuePair(pd, {.type = QpType::ud, .send_cq = own, .recv_cq = foreign}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { QueuePair(pd, {.type = QpType::ud, .send_cq = foreign, .recv_cq = own}); }) ==
        Errc::invalid_argument);
}

TEST_CASE("a port that is in use is refused with a message that names it") {
  World world;
  Device& device = world.add_device();
  Party first(device);
  const uint16_t port = first.address().port();
  CHECK(refusal([&] { Party(device, {.datagram = {.port = port}}); }) == Errc::address_in_use);
  CHECK(first.qp.number() == port);
}

TEST_CASE("completion queues have 1 to 1048576 entries") {
  World world;
  Device& device = world.add_device();
  CHECK(refusal([&] { CompletionQueue(device, 0); }) == Errc::invalid_argument);
  CHECK(refusal([&] { CompletionQueue(device, (1U << 20) + 1); }) == Errc::invalid_argument);
  CHECK(CompletionQueue(device, 1).entries() == 1);
  CHECK(CompletionQueue(device, 3).entries() == 3);
}

TEST_CASE("memory that cannot be registered is refused") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  std::vector<std::byte> memory(100);
  CHECK(refusal([&] { MemoryRegion(pd, nullptr, 10); }) == Errc::invalid_argument);
  CHECK(refusal([&] { MemoryRegion(pd, std::span(memory), Access::remote_write); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { MemoryRegion(pd, std::span(memory), Access::none, ~uint64_t{0} - 98); }) ==
        Errc::invalid_argument);
  CHECK_FALSE(refusal([&] { MemoryRegion(pd, nullptr, 0); }));
  CHECK(device.query().memory_regions == 0);
}

TEST_CASE("a region tells what it is, and each has an STag of its own") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  std::vector<std::byte> memory(100);
  const MemoryRegion one(pd, std::span(memory));
  const MemoryRegion two(pd, memory.data() + 10, 20, Access::none, 5000);
  CHECK(one.lkey() == one.rkey());
  CHECK(one.lkey() != two.lkey());
  CHECK(one.lkey() != 0);
  CHECK(one.address() == memory.data());
  CHECK(one.length() == 100);
  CHECK(one.base() == reinterpret_cast<uintptr_t>(memory.data()));
  CHECK(two.base() == 5000);
  CHECK(two.sge().address == memory.data() + 10);
  CHECK(two.sge().length == 20);
  CHECK(two.sge(3, 4).address == memory.data() + 13);
  CHECK(two.sge(3, 4).lkey == two.lkey());
  CHECK(device.query().memory_regions == 2);
}

TEST_CASE("operations of RC queue pairs alone are refused on UD ones") {
  World world;
  Party party(world.add_device());
  CHECK(refusal([&] { party.qp.connect(Address::parse("10.0.0.2:5")); }) ==
        Errc::unsupported_operation);
  CHECK(refusal([&] { party.qp.disconnect(); }) == Errc::unsupported_operation);
  CHECK(refusal([&] { party.qp.wait_disconnected(0ns); }) == Errc::unsupported_operation);
}

TEST_CASE("a queue pair and a device tell what they are") {
  World world;
  Device& device = world.add_device();
  Party party(device, {.capacity = {.max_send_wr = 5, .max_recv_wr = 7},
                       .datagram = {.q_key = 9, .max_rate = 1000000}});
  const QueuePairAttributes attributes = party.qp.query();
  CHECK(attributes.type == QpType::ud);
  CHECK(attributes.number == party.qp.number());
  CHECK(attributes.number == party.address().port());
  CHECK(attributes.number < 1U << 24);
  CHECK(attributes.local_address == party.address());
  CHECK(attributes.local_address.host() == device.address().host());
  CHECK(attributes.capacity.max_send_wr == 5);
  CHECK(attributes.q_key == 9);
  CHECK(attributes.max_rate == 1000000);
  const DeviceAttributes limits = device.query();
  CHECK(limits.queue_pairs == 1);
  CHECK(limits.memory_regions == 1);
  CHECK(limits.max_message == 1U << 30);
  CHECK(limits.max_queue_depth == 65536);
  CHECK(limits.max_sge == 64);
  CHECK(limits.max_inline_data == 1024);
  CHECK_FALSE(limits.crc_backend.empty());
  CHECK(device.counter("no such counter") == 0);
}

namespace {

/// The wr_ids of completions, all of which are flushed.
std::vector<uint64_t> flushed(CompletionQueue& cq) {
  std::vector<uint64_t> ids;
  for (const WorkCompletion& completion : drain(cq)) {
    CHECK(completion.status == WcStatus::wr_flush_error);
    ids.push_back(completion.wr_id);
  }
  return ids;
}

using FlushedIds = std::vector<uint64_t>;

}  // namespace

TEST_CASE("what is posted in error is flushed after what was flushed before, of either type") {
  for (const QpType type : {QpType::ud, QpType::rd}) {
    CAPTURE(to_string(type));
    World world;
    Party party(world.add_device(), {.datagram = {.max_rate = 1}, .type = type});
    Party other(world.add_device(), {.type = type});
    const auto send = [&](uint64_t id) {
      return party.send(other.address(), 0, 100, id, SendFlags::none);
    };
    for (uint64_t id = 0; id < 3; ++id) REQUIRE_FALSE(send(id));
    for (uint64_t id = 0; id < 3; ++id) REQUIRE_FALSE(party.post_recv(id, 0, 10));
    party.qp.modify(QpState::error);
    CHECK_FALSE(send(3));
    CHECK_FALSE(party.post_recv(3, 0, 10));
    // Over UD the first is out, unsignaled.
    CHECK(flushed(party.send_cq) ==
          (type == QpType::ud ? FlushedIds{1, 2, 3} : FlushedIds{0, 1, 2, 3}));
    CHECK(flushed(party.recv_cq) == FlushedIds{0, 1, 2, 3});
    CHECK(party.qp.query().posted_sends == 0);
    CHECK(party.qp.query().posted_receives == 0);
    // Nothing was sent of it.
    other.post_receives(4, 100);
    world.advance(60s);
    CHECK(drain(other.recv_cq).size() <= 1);
  }
}

TEST_CASE("in error requests are flushed in order where each peer has an order of its own") {
  World world;
  Party party(world.add_device(),
              {.type = QpType::rd, .reliable = {.completion_order = CompletionOrder::peer}});
  const Address one = Address::parse("10.0.9.1", 9), other = Address::parse("10.0.9.2", 9);
  for (uint64_t id = 0; id < 4; ++id)
    REQUIRE_FALSE(party.send(id % 2 == 0 ? one : other, 0, 10, id));
  party.qp.modify(QpState::error);
  CHECK_FALSE(party.send(one, 0, 10, 4));
  CHECK_FALSE(party.send(other, 0, 10, 5));
  const FlushedIds ids = flushed(party.send_cq);
  REQUIRE(ids.size() == 6);
  CHECK(ids[4] == 4);
  CHECK(ids[5] == 5);
}

TEST_CASE("in error a queue with completions that wait for room says queue_full") {
  World world;
  Party party(
      world.add_device(),
      {.send_entries = 1, .receive_entries = 1, .capacity = {.max_send_wr = 4, .max_recv_wr = 4}});
  party.qp.modify(QpState::error);
  const Address to = Address::parse("10.0.9.1", 9);
  // One of each lies in the completion queue, four in the queue.
  for (uint64_t id = 0; id < 5; ++id) {
    REQUIRE_FALSE(party.send(to, 0, 10, id));
    REQUIRE_FALSE(party.post_recv(id, 0, 10));
  }
  CHECK(party.send(to, 0, 10, 9) == Errc::queue_full);
  CHECK(party.post_recv(9, 0, 10) == Errc::queue_full);
  CHECK(party.qp.query().posted_sends == 4);
  CHECK(party.qp.query().posted_receives == 4);
  std::vector<uint64_t> sends, receives;
  for (int round = 0; round < 10; ++round) {
    for (const uint64_t id : flushed(party.send_cq)) sends.push_back(id);
    for (const uint64_t id : flushed(party.recv_cq)) receives.push_back(id);
    world.settle();
  }
  CHECK(sends == FlushedIds{0, 1, 2, 3, 4});
  CHECK(receives == FlushedIds{0, 1, 2, 3, 4});
}

TEST_CASE("in error a request that is wrong is refused as in any state") {
  World world;
  Party party(world.add_device());
  party.qp.modify(QpState::error);
  CHECK(party.send({}, 0, 10) == Errc::invalid_destination);
  const std::vector<Sge> many(5, party.mr.sge(0, 1));
  CHECK(party.qp.post_recv({.sges = many}) == Errc::too_many_sges);
  CHECK(flushed(party.send_cq).empty());
  CHECK(flushed(party.recv_cq).empty());
}

TEST_CASE("a queue pair that was reset after posts in error begins with empty queues") {
  World world;
  Party party(world.add_device(), {.send_entries = 1, .receive_entries = 1});
  Party other(world.add_device());
  other.post_receives(4, 10);
  party.qp.modify(QpState::error);
  for (uint64_t id = 0; id < 3; ++id) {
    REQUIRE_FALSE(party.send(other.address(), 0, 10, id));
    REQUIRE_FALSE(party.post_recv(id, 0, 10));
  }
  party.qp.modify(QpState::reset);
  CHECK(party.qp.query().posted_sends == 0);
  CHECK(party.qp.query().posted_receives == 0);
  CHECK(flushed(party.send_cq) == FlushedIds{0});
  CHECK(flushed(party.recv_cq) == FlushedIds{0});
  party.qp.modify(QpState::init);
  party.qp.modify(QpState::rts);
  REQUIRE_FALSE(party.send(other.address(), 0, 10, 7));
  world.settle();
  const auto sent = drain(party.send_cq);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].wr_id == 7);
  CHECK(sent[0].status == WcStatus::success);
  CHECK(drain(other.recv_cq).size() == 1);
}

TEST_CASE(
    "the Q_Key of a queue pair over datagrams is changed before it is ready, of either type") {
  for (const QpType type : {QpType::ud, QpType::rd}) {
    CAPTURE(to_string(type));
    World world;
    Party sender(world.add_device(), {.type = type});
    Party target(world.add_device(), {.datagram = {.q_key = 1}, .type = type});
    const auto send = [&](uint32_t q_key) {
      REQUIRE_FALSE(sender.qp.post_send(
          {.sges = {sender.mr.sge(0, 10)}, .destination = target.address(), .q_key = q_key}));
      world.settle();
      static_cast<void>(drain(sender.send_cq));
      return drain(target.recv_cq).size();
    };
    CHECK(refusal([&] { target.qp.set_q_key(2); }) == Errc::invalid_state);  // in rts
    CHECK(target.qp.query().q_key == 1);
    target.qp.modify(QpState::error);
    CHECK(refusal([&] { target.qp.set_q_key(2); }) == Errc::invalid_state);
    target.qp.modify(QpState::reset);
    target.qp.set_q_key(2);
    CHECK(target.qp.query().q_key == 2);
    target.qp.modify(QpState::init);
    target.qp.set_q_key(0x80000003);
    target.qp.modify(QpState::rts);
    target.post_receives(4, 10);
    CHECK(send(1) == 0);
    CHECK(send(2) == 0);
    CHECK(send(0x80000003) == 1);
    CHECK(target.qp.query().q_key == 0x80000003);
  }
}
