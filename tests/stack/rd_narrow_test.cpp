// SPDX-License-Identifier: Apache-2.0
// Over a reliable queue pair a datagram gets lost, and before it can be sent again the path has
// become too narrow for it: the association is opened anew, and what was under way is repeated.
#include <optional>

#include "llp/impairment/faults.h"
#include "stack/exchange.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Loses one of the long datagrams, once.
class LosesOne final : public llp::ForwardingDatagramLink {
 public:
  LosesOne(std::unique_ptr<DatagramLink> inner, int which)
      : ForwardingDatagramLink(std::move(inner)), left_(which) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    for (size_t i = 0; i < burst.size(); ++i) {
      const bool lost = burst[i].size() > 1000 && left_-- == 0;
      const llp::SendResult result =
          lost ? llp::SendResult{.sent = 1} : inner().send(burst.subspan(i, 1));
      if (result.sent != 1) return {.sent = i, .status = result.status, .error = result.error};
    }
    return {.sent = burst.size()};
  }

 private:
  int left_;
};

/// A path that can be made narrow, or silent, for all datagrams or for all but those of one length,
/// or swallow those that are too long.
struct Path {
  size_t most = SIZE_MAX;
  size_t hole = SIZE_MAX;
  bool silent = false;
  size_t but = 0;
};

class OverPath final : public llp::ForwardingDatagramLink {
 public:
  OverPath(std::unique_ptr<DatagramLink> inner, const Path& path)
      : ForwardingDatagramLink(std::move(inner)), path_(path) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    if (!path_.silent && path_.hole == SIZE_MAX) return inner().send(burst);
    for (const llp::OutgoingDatagram& one : burst)
      if (path_.silent ? one.size() == path_.but : one.size() <= path_.hole)
        inner().send({&one, 1});
    return {.sent = burst.size()};
  }
  size_t max_datagram(const Address& to) override {
    return std::min(inner().max_datagram(to), path_.most);
  }

 private:
  const Path& path_;
};

World::Wrap over(const Path& path) {
  return [&path](World::Link link) -> World::Link {
    return std::make_unique<OverPath>(std::move(link), path);
  };
}

/// Two RD queue pairs, each way over a path of its own, that have exchanged a Send.
struct Acquainted {
  /// `seeks`: ways around paths on which long datagrams vanish.
  explicit Acquainted(const ReliableOptions& reliable, bool seeks = false)
      : options(exchange_options(QpType::rd, 0)) {
    options.reliable = reliable;
    options.datagram.jumbo = !seeks;  // where IP fragments there is none
    a.emplace(a_device, options);
    b.emplace(b_device, options);
    REQUIRE_FALSE(b->post_recv(1, 0, 100));
    REQUIRE_FALSE(a->send(b->address(), 0, 100));
    pass(5);
    REQUIRE(drain(a->send_cq).size() == 1);
  }
  void pass(int milliseconds) {
    for (; milliseconds > 0; --milliseconds) world.advance(1ms);
  }

  Path there;
  Path back;
  PartyOptions options;
  World world;
  Device& a_device = world.add_device(over(there));
  Device& b_device = world.add_device(over(back));
  std::optional<Party> a;
  std::optional<Party> b;
};

PartyOptions with(RecordCompletion policy) {
  PartyOptions options = exchange_options(QpType::rd, 0);
  options.datagram.record_completion = policy;
  return options;
}

struct Narrowing {
  explicit Narrowing(RecordCompletion policy = RecordCompletion::complete)
      : options(with(policy)) {}
  /// Of the long datagrams one gets lost, and soon afterwards the path carries less.
  World::Wrap wrap() {
    return [](World::Link link) -> World::Link {
      return std::make_unique<llp::FaultyDatagramLink>(
          std::make_unique<LosesOne>(std::move(link), 50),
          llp::LinkFaults{
              .paths = {{.after = 0, .max_datagram = 1472}, {.after = 64, .max_datagram = 600}}});
    };
  }
  Exchange<Party> exchange() {
    return {a, b, b.address(), [this] {
              for (Device& device : world.devices) device.progress();
              world.clock.advance(20us);
            }};
  }
  uint64_t count(const char* counter) const {
    return a_device.counter(counter) + b_device.counter(counter);
  }

  const PartyOptions options;
  World world;
  Device& a_device = world.add_device(wrap());
  Device& b_device = world.add_device(wrap());
  Party a{a_device, options};
  Party b{b_device, options};
  MemoryRegion region{b.pd, std::span(b.memory), kAllAccess};
};

/// Both ends opened it twice.
void check_opened_anew(const Narrowing& scene) { CHECK(scene.count("rd_associations") == 4); }

}  // namespace

TEST_CASE("rd: a Write-Record that has to be cut anew in its middle is delivered once and whole") {
  Narrowing scene;
  scene.exchange().write(kLargeMessage, 1, scene.region);
  check_opened_anew(scene);
  CHECK(scene.count("records_completed") == 1);
  CHECK(scene.count("records_partial") == 0);
  scene.exchange().write(3000, 2, scene.region);
}

TEST_CASE("rd: each byte of a Write-Record that is cut anew is reported once, segment by segment") {
  Narrowing scene(RecordCompletion::per_segment);
  const auto contents = pattern(kLargeMessage, 1);
  scene.a.fill(contents);
  REQUIRE_FALSE(
      scene.a.qp.post_write_record({.wr_id = 1,
                                    .sges = {scene.a.mr.sge(0, kLargeMessage)},
                                    .destination = scene.b.address(),
                                    .remote = {scene.region.rkey(), scene.region.base()}}));
  uint64_t expected = scene.region.base();
  const Exchange<Party> exchange = scene.exchange();
  while (expected != scene.region.base() + kLargeMessage) {
    const auto record = completion_of(scene.b.recv_cq, exchange.step);
    REQUIRE(record);
    REQUIRE(record->tagged_offset == expected);
    const size_t at = expected - scene.region.base();
    const auto reported = scene.b.bytes(at, record->byte_count);
    REQUIRE(same(reported, std::span(contents).subspan(at, record->byte_count)));
    std::ranges::fill(reported, std::byte{0});  // the application uses it for something else
    expected += record->byte_count;
  }
  REQUIRE(completion_of(scene.a.send_cq, exchange.step)->status == WcStatus::success);
  CHECK(drain(scene.b.recv_cq).empty());
  CHECK(std::ranges::count(scene.b.bytes(0, kLargeMessage), std::byte{0}) == kLargeMessage);
  check_opened_anew(scene);
}

TEST_CASE("rd: a Send that has to be cut anew in its middle takes one receive") {
  Narrowing scene;
  scene.exchange().send(kLargeMessage, 1);
  check_opened_anew(scene);
  scene.exchange().send(3000, 2);
}

TEST_CASE("rd: a Read whose response has to be cut anew in its middle brings all") {
  Narrowing scene;
  scene.exchange().read(kLargeMessage, 1, scene.region);
  check_opened_anew(scene);
  scene.exchange().read(3000, 2, scene.region);
}

TEST_CASE("rd: datagrams under way the other way are repeated too where a path narrows") {
  Acquainted scene({});
  Party& a = *scene.a;
  Party& b = *scene.b;
  for (Party* party : {&a, &b}) REQUIRE_FALSE(party->post_recv(2, 0, 2000));
  scene.there.silent = true;
  REQUIRE_FALSE(b.send(a.address(), 0, 100, 2));
  scene.pass(1);
  REQUIRE(drain(a.recv_cq).size() == 1);  // and its acknowledgement is lost
  REQUIRE_FALSE(a.send(b.address(), 0, 1400, 2));
  scene.a_device.progress();
  scene.there = {.most = 600};
  scene.pass(2000);
  for (Party* party : {&a, &b}) {
    const auto done = drain(party->send_cq);
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == WcStatus::success);
  }
  CHECK(drain(a.recv_cq).empty());
  CHECK(drain(b.recv_cq).size() == 2);
  CHECK(scene.a_device.counter("rd_associations") == 2);
}

TEST_CASE(
    "rd: a peer that has forgotten does not remember by an association that this end never had") {
  const WrOpcode opcode = GENERATE(WrOpcode::send, WrOpcode::write_record);
  Acquainted scene({.idle_timeout = 1s});
  Party& a = *scene.a;
  Party& b = *scene.b;
  const MemoryRegion region(b.pd, std::span(b.memory), kAllAccess);
  for (uint64_t id = 2; id <= 4; ++id) REQUIRE_FALSE(b.post_recv(id, 0, 2000));
  REQUIRE_FALSE(a.post_recv(2, 0, 2000));
  drain(b.recv_cq);
  scene.back.silent = true;
  REQUIRE_FALSE(a.qp.post_send({.wr_id = 2,
                                .sges = {a.mr.sge(0, 1400)},
                                .destination = b.address(),
                                .opcode = opcode,
                                .remote = {region.rkey(), region.base()}}));
  scene.pass(1);
  REQUIRE(drain(b.recv_cq).size() == 1);
  scene.there.most = 600;
  scene.pass(20);
  scene.there.silent = true;
  scene.pass(2500);
  REQUIRE(scene.b_device.counter("rd_forgotten") == 1);
  // Of the other end's answers its Challenges alone come.
  scene.there.silent = false;
  scene.back.but = 40;
  for (int i = 0; i < 2000 && scene.b_device.counter("rd_associations") == 1; ++i) scene.pass(1);
  REQUIRE(scene.b_device.counter("rd_associations") == 2);
  REQUIRE_FALSE(b.send(a.address(), 0, 1400, 77));
  scene.pass(2);
  scene.back.most = 600;
  scene.pass(300);
  scene.back.silent = false;
  scene.pass(3000);
  CHECK(drain(b.recv_cq).empty());
  const auto done = drain(a.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::peer_restarted);
}

TEST_CASE(
    "rd: a peer that holds a message is asked for signs while a later one is too long to repeat") {
  Acquainted scene({.peer_timeout = 2s});
  Party& a = *scene.a;
  Party& b = *scene.b;
  REQUIRE_FALSE(a.send(b.address(), 0, 100, 2));  // finds no receive
  scene.pass(5);
  scene.there.silent = true;
  REQUIRE_FALSE(a.send(b.address(), 0, 1200, 3));
  scene.a_device.progress();
  scene.there.most = 600;
  scene.there.silent = false;
  scene.pass(10'000);
  CHECK(drain(a.send_cq).empty());

  REQUIRE_FALSE(b.post_recv(2, 0, 2000));
  REQUIRE_FALSE(b.post_recv(3, 0, 2000));
  scene.pass(2000);
  const auto done = drain(a.send_cq);
  REQUIRE(done.size() == 2);
  for (const WorkCompletion& one : done) CHECK(one.status == WcStatus::success);
  CHECK(drain(b.recv_cq).size() == 3);
}

TEST_CASE("rd: a Read whose responses get lost in a black hole ends as soon as a Send would") {
  constexpr int kPeerTimeout = 2000;
  Acquainted scene({.peer_timeout = 1ms * kPeerTimeout});
  Party& a = *scene.a;
  Party& b = *scene.b;
  const MemoryRegion region(b.pd, std::span(b.memory), kAllAccess);
  // The longer one has a short datagram at its end, which comes.
  const size_t length = GENERATE(size_t{1000}, size_t{3000});
  scene.back.hole = 600;
  REQUIRE_FALSE(a.qp.post_send({.wr_id = 2,
                                .sges = {a.mr.sge(0, length)},
                                .destination = b.address(),
                                .opcode = WrOpcode::rdma_read,
                                .remote = {region.rkey(), region.base()}}));
  scene.pass(kPeerTimeout - 100);
  CHECK(drain(a.send_cq).empty());
  scene.pass(kPeerTimeout);
  const auto done = drain(a.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::retry_exceeded);
}

TEST_CASE("rd: where long datagrams vanish and short ones do not, all become as short, and come") {
  const size_t longest = GENERATE(1300u, 700u);
  Acquainted scene({}, true);
  Party& a = *scene.a;
  Party& b = *scene.b;
  drain(b.recv_cq);
  const auto sent = pattern(4000, 5);
  a.fill(sent);
  for (uint64_t id = 1; id <= 2; ++id) REQUIRE_FALSE(b.post_recv(id, (id - 1) * 4000, 4000));
  scene.there.hole = longest;
  REQUIRE_FALSE(a.send(b.address(), 0, 4000, 1));
  REQUIRE_FALSE(a.send(b.address(), 0, 4000, 2));
  scene.pass(5000);
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == 2);
  for (const WorkCompletion& one : received) CHECK(one.byte_count == 4000);
  CHECK(std::ranges::equal(b.bytes(0, 4000), sent));
  for (const WorkCompletion& one : drain(a.send_cq)) CHECK(one.status == WcStatus::success);
  const uint64_t steps = longest > 1200 ? 1 : 2;
  CHECK(scene.a_device.counter("mtu_black_holes") == steps);
  for (uint64_t i = 0; i < steps; ++i) {
    const auto error = a.qp.poll_error();
    REQUIRE(error);
    CHECK(error->kind == DatagramErrorKind::mtu_black_hole);
    CHECK(error->datagram_bytes == (i == 0 ? 1472 : 1200));
    CHECK(error->smaller_bytes == (i == 0 ? 1200 : 548));
  }
}

TEST_CASE("rd: early datagrams that were dropped are sent again, and each message delivered once") {
  Acquainted scene({.message_timeout = 1s});
  Party& a = *scene.a;
  Party& b = *scene.b;
  drain(b.recv_cq);
  for (uint64_t id = 1; id <= 3; ++id) REQUIRE_FALSE(b.post_recv(id, id * 2000, 2000));
  scene.there.hole = 600;
  REQUIRE_FALSE(a.send(b.address(), 0, 1400, 1));
  for (uint64_t id = 2; id <= 3; ++id) REQUIRE_FALSE(a.send(b.address(), 0, 100, id));
  scene.pass(2000);
  CHECK(scene.b_device.counter("rd_early_dropped") == 1);
  CHECK(drain(b.recv_cq).empty());
  scene.there.hole = SIZE_MAX;
  scene.pass(2000);
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(received[i].wr_id == i + 1);
    CHECK(received[i].byte_count == (i == 0 ? 1400 : 100));
  }
  const auto done = drain(a.send_cq);
  REQUIRE(done.size() == 3);
  for (const WorkCompletion& one : done) CHECK(one.status == WcStatus::success);
}

TEST_CASE("rd: a message that waits for a receive is kept for as long as that takes") {
  Acquainted scene({.message_timeout = 1s});
  Party& a = *scene.a;
  Party& b = *scene.b;
  for (uint64_t id = 1; id <= 3; ++id) REQUIRE_FALSE(a.send(b.address(), 0, 100, id));
  scene.pass(5000);
  CHECK(scene.b_device.counter("rd_held") == 1);
  for (uint64_t id = 1; id <= 3; ++id) REQUIRE_FALSE(b.post_recv(id, 0, 2000));
  scene.pass(5);
  CHECK(drain(a.send_cq).size() == 3);
  CHECK(scene.b_device.counter("rd_early_dropped") == 0);
  CHECK(scene.b_device.counter("rd_associations") == 1);
}

TEST_CASE("rd: a Write-Record of which memory went before it is repeated is not a success") {
  Acquainted scene({.receive_window = 2});
  Party& a = *scene.a;
  Party& b = *scene.b;
  const MemoryRegion region(b.pd, std::span(b.memory), kAllAccess);
  scene.back.silent = true;
  REQUIRE_FALSE(a.qp.post_write_record({.wr_id = 2,
                                        .sges = {a.mr.sge(0, 6000)},
                                        .destination = b.address(),
                                        .remote = {region.rkey(), region.base()}}));
  scene.a_device.progress();
  scene.b_device.progress();
  REQUIRE_FALSE(
      b.qp.post_send({.opcode = WrOpcode::local_invalidate, .invalidate_stag = region.rkey()}));
  scene.b_device.progress();
  scene.there.most = 600;
  scene.back.silent = false;
  scene.pass(2000);
  const auto done = drain(a.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::remote_access_error);
  CHECK(scene.a_device.counter("rd_associations") == 2);
  CHECK(scene.b_device.counter("records_completed") == 0);
  CHECK(scene.b_device.counter("records_partial") == 1);
}

TEST_CASE(
    "rd: a message delivered but not acknowledged when the path narrows is not delivered twice") {
  const bool is_send = GENERATE(true, false);
  Path there, back;
  const PartyOptions options =
      with(GENERATE(RecordCompletion::complete, RecordCompletion::per_segment));
  World world;
  Device& a_device = world.add_device(over(there));
  Device& b_device = world.add_device(over(back));
  Party a(a_device, options);
  Party b(b_device, options);
  const MemoryRegion region(b.pd, std::span(b.memory), kAllAccess);
  const Step step = [&] {
    for (Device& device : world.devices) device.progress();
    world.clock.advance(20us);
  };
  const auto post = [&](uint64_t id, size_t size) {
    const Sge sge = a.mr.sge(0, size);
    return a.qp.post_send({.wr_id = id,
                           .sges = {&sge, 1},
                           .flags = SendFlags::signaled,
                           .destination = b.address(),
                           .opcode = is_send ? WrOpcode::send : WrOpcode::write_record,
                           .remote = {region.rkey(), region.base()}});
  };
  for (uint64_t id = 1; id <= 4; ++id) REQUIRE_FALSE(b.post_recv(id, 0, 2000));
  REQUIRE_FALSE(post(1, 100));
  REQUIRE(completion_of(a.send_cq, step));
  REQUIRE(completion_of(b.recv_cq, step));

  back.silent = true;
  REQUIRE_FALSE(post(2, 1400));
  REQUIRE(completion_of(b.recv_cq, step)->byte_count == 1400);
  there.most = 600;
  for (int i = 0; i < 100'000 && a_device.counter("rd_associations") == 1; ++i) {
    back.silent = i < 5000;  // 100 ms
    step();
  }
  const auto done = completion_of(a.send_cq, step);
  REQUIRE(done);
  CHECK(done->status == WcStatus::success);
  CHECK(a_device.counter("rd_associations") == 2);
  CHECK(b_device.counter("drop_late") >= 1);

  REQUIRE_FALSE(post(3, 300));
  const auto next = completion_of(b.recv_cq, step);
  REQUIRE(next);
  CHECK(next->byte_count == 300);
  CHECK(completion_of(a.send_cq, step)->status == WcStatus::success);
  CHECK(drain(b.recv_cq).empty());
}
