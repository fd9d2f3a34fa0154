// SPDX-License-Identifier: Apache-2.0
#include "stack/ud_scene.h"

/// The operations of a UD queue pair besides plain Sends, Write-Records and Reads.
namespace diwarp::test {

namespace {

constexpr uint64_t kData = 0x0123456789ABCDEF;

struct Pair {
  explicit Pair(const PartyOptions& options = {}) : a(one, options), b(two, options) {}

  std::error_code post(WrOpcode opcode, size_t length, SendFlags flags = SendFlags::signaled,
                       STag invalidate = 0, std::optional<uint64_t> immediate = {}) {
    const Sge sge = a.mr.sge(0, length);
    return a.qp.post_send({.sges = {&sge, 1},
                           .flags = flags | SendFlags::signaled,
                           .destination = b.address(),
                           .opcode = opcode,
                           .invalidate_stag = invalidate,
                           .immediate = immediate});
  }

  World world;
  Device& one = world.add_device();
  Device& two = world.add_device();
  Party a;
  Party b;
};

}  // namespace

TEST_CASE("immediate data come with a Send, whatever its length") {
  Pair pair;
  const size_t size = GENERATE(size_t{0}, size_t{1}, size_t{1434}, size_t{1435}, size_t{20'000});
  CAPTURE(size);
  pair.a.fill(pattern(size, 3));
  REQUIRE_FALSE(pair.b.post_recv(7, 0, size));
  REQUIRE_FALSE(pair.post(WrOpcode::send, size, SendFlags::signaled, 0, kData));
  pair.world.settle();
  const auto completions = drain(pair.b.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].has_immediate);
  CHECK(completions[0].immediate == kData);
  CHECK(completions[0].byte_count == size);
  CHECK(same(pair.b.bytes(0, size), pattern(size, 3)));
}

TEST_CASE("a Send without immediate data says so") {
  Pair pair;
  REQUIRE_FALSE(pair.b.post_recv(7, 0, 10));
  REQUIRE_FALSE(pair.post(WrOpcode::send, 10));
  pair.world.settle();
  const auto completions = drain(pair.b.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK_FALSE(completions[0].has_immediate);
}

TEST_CASE("segments of one message that disagree about immediate data are not put together") {
  Scene scene;
  scene.target.post_receives(4, 100);
  Segment first = scene.half(5, false);
  first.immediate = 1;
  scene.send(scene.stranger, first);
  Segment other = scene.half(5, true);
  scene.send(scene.stranger, other);
  other.immediate = 2;
  scene.send(scene.stranger, other);
  CHECK(scene.count("drop_contradiction") == 2);
  CHECK(scene.received().empty());
  other.immediate = 1;
  scene.send(scene.stranger, other);
  CHECK(scene.received().size() == 1);
}

TEST_CASE("a Send with Invalidate invalidates, on delivery, what the peer may") {
  Pair pair;
  MemoryRegion open(pair.b.pd, std::span(pair.b.memory).first(100),
                    Access::local_write | Access::remote_write | Access::remote_invalidate);
  const bool solicited = GENERATE(false, true);
  REQUIRE_FALSE(pair.b.post_recv(7, 200, 3000));
  REQUIRE_FALSE(pair.post(WrOpcode::send_with_invalidate, 3000,
                          solicited ? SendFlags::solicited : SendFlags::none, open.rkey()));
  pair.world.settle();
  const auto completions = drain(pair.b.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].invalidated);
  CHECK(completions[0].invalidated_stag == open.rkey());
  CHECK(completions[0].solicited == solicited);
  CHECK_FALSE(open.valid());
}

TEST_CASE("a Send with Invalidate of what the peer may not is delivered, and invalidates nothing") {
  Pair pair;
  MemoryRegion closed(pair.b.pd, std::span(pair.b.memory).first(100),
                      Access::local_write | Access::remote_write);
  REQUIRE_FALSE(pair.b.post_recv(7, 200, 100));
  REQUIRE_FALSE(pair.post(WrOpcode::send_with_invalidate, 100, SendFlags::none, closed.rkey()));
  pair.world.settle();
  const auto completions = drain(pair.b.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK_FALSE(completions[0].invalidated);
  CHECK(closed.valid());
  CHECK(pair.two.counter("drop_stag") == 1);
}

TEST_CASE("windows and fast registrations are made valid and invalid on UD queue pairs as well") {
  Pair pair;
  FastRegistration fast(pair.a.pd, 1000);
  const auto run = [&](const SendWorkRequest& request) {
    REQUIRE_FALSE(pair.a.qp.post_send(request));
    pair.world.settle();
    const auto completions = drain(pair.a.send_cq);
    REQUIRE(completions.size() == 1);
    return completions[0].status;
  };
  SendWorkRequest request{.opcode = WrOpcode::register_memory,
                          .binding = {.stag = fast.stag(),
                                      .address = pair.a.memory.data(),
                                      .length = 1000,
                                      .access = Access::remote_read}};
  CHECK(run(request) == WcStatus::success);
  CHECK(fast.query().valid);
  CHECK(run(request) == WcStatus::window_bind_error);  // it is valid already
  CHECK(run({.opcode = WrOpcode::local_invalidate, .invalidate_stag = fast.stag()}) ==
        WcStatus::success);
  CHECK_FALSE(fast.query().valid);
}

TEST_CASE("a local operation keeps its place among messages") {
  Pair pair;
  FastRegistration fast(pair.a.pd, 1000);
  pair.b.post_receives(2, 100);
  const Sge sge = pair.a.mr.sge(0, 100);
  const SendWorkRequest message{.sges = {&sge, 1}, .destination = pair.b.address()};
  SendWorkRequest first = message;
  first.wr_id = 1;
  SendWorkRequest last = message;
  last.wr_id = 3;
  REQUIRE_FALSE(pair.a.qp.post_send(first));
  REQUIRE_FALSE(pair.a.qp.post_send({.wr_id = 2,
                                     .opcode = WrOpcode::register_memory,
                                     .binding = {.stag = fast.stag(),
                                                 .address = pair.a.memory.data(),
                                                 .length = 1000,
                                                 .access = Access::remote_read}}));
  REQUIRE_FALSE(pair.a.qp.post_send(last));
  pair.world.settle();
  const auto completions = drain(pair.a.send_cq);
  REQUIRE(completions.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(completions[i].wr_id == i + 1);
    CHECK(completions[i].status == WcStatus::success);
  }
  CHECK(drain(pair.b.recv_cq).size() == 2);
}

TEST_CASE("atomics over datagrams are refused when they are posted") {
  Pair pair;
  const WrOpcode opcode =
      GENERATE(WrOpcode::fetch_add, WrOpcode::compare_swap, WrOpcode::swap, WrOpcode::rdma_write,
               WrOpcode::immediate, WrOpcode::rdma_read_with_invalidate);
  CAPTURE(to_string(opcode));
  CHECK(pair.post(opcode, 8) == Errc::unsupported_operation);
  CHECK(drain(pair.a.send_cq).empty());
}

TEST_CASE("requests over datagrams that cannot be meant so are refused when they are posted") {
  Pair pair;
  const Sge sge = pair.a.mr.sge(0, 100);
  const SendWorkRequest good{.sges = {&sge, 1},
                             .destination = pair.b.address(),
                             .opcode = WrOpcode::rdma_read,
                             .remote = {1, 0}};
  const auto posting = [&](auto&& change) {
    SendWorkRequest request = good;
    change(request);
    return pair.a.qp.post_send(request);
  };
  CHECK(posting([](auto& r) { r.flags = SendFlags::inline_data; }) == Errc::invalid_argument);
  CHECK(posting([](auto& r) { r.immediate = 1; }) == Errc::invalid_argument);
  CHECK(posting([](auto& r) { r.remote.offset = ~uint64_t{0} - 98; }) == Errc::invalid_argument);
  CHECK(posting([](auto& r) { r.destination = Address::parse("224.0.0.9", 5); }) ==
        Errc::invalid_destination);
  CHECK(posting([](auto& r) { r.destination = Address::parse("255.255.255.255", 5); }) ==
        Errc::invalid_destination);
  CHECK(posting([](auto& r) { r.destination = Address::parse("::1", 5); }) ==
        Errc::invalid_destination);
  CHECK(posting([](auto& r) { r.destination = r.destination.with_port(0); }) ==
        Errc::invalid_destination);
  CHECK(posting([](auto& r) {
          r.opcode = WrOpcode::write_record;
          r.remote.offset = ~uint64_t{0} - 98;
        }) == Errc::invalid_argument);
  CHECK(posting([](auto& r) { r.opcode = WrOpcode::local_invalidate; }) == Errc::invalid_argument);
  CHECK(drain(pair.a.send_cq).empty());
}

TEST_CASE("a receive that does not come is an entry of the error queue at both ends") {
  Pair pair;
  REQUIRE_FALSE(pair.post(WrOpcode::send, 100));
  pair.world.settle();
  const auto here = pair.b.qp.poll_error();
  REQUIRE(here);
  CHECK(here->peer == pair.a.address());
  CHECK_FALSE(here->reported);
  CHECK(here->code == TerminateCode{1, 2, 2});
  CHECK_FALSE(pair.b.qp.poll_error());
  const auto there = pair.a.qp.poll_error();
  REQUIRE(there);
  CHECK(there->peer == pair.b.address());
  CHECK(there->reported);
  CHECK(there->code == TerminateCode{1, 2, 2});
  CHECK(there->msn == here->msn);
  CHECK_FALSE(pair.a.qp.poll_error());
  // It goes on.
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 100));
  REQUIRE_FALSE(pair.post(WrOpcode::send, 100));
  pair.world.settle();
  CHECK(drain(pair.b.recv_cq).size() == 1);
}

}  // namespace diwarp::test
