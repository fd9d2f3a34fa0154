// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// RDMA Writes are placed in the peer's memory, where and only where that is allowed.
namespace diwarp::test {

TEST_CASE("RDMA Writes of 0 bytes to 8 MiB are placed whole over TCP, both ways") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  const size_t largest = (8 << 20) + 1;
  RcParty a(one, {.memory = largest, .access = kOpen});
  RcParty b(other, {.memory = largest, .access = kOpen});
  connect(a, b, other);
  const std::vector<std::byte> contents = pattern(largest, 1);
  const auto check = [&](RcParty& from, RcParty& to, size_t size) {
    from.fill(contents);
    std::fill(to.memory.begin(), to.memory.end(), std::byte{0});
    REQUIRE_FALSE(to.post_recv(3, 0, 0));
    // Only messages make the order in which the target's RNIC thread comes after this, and
    // ThreadSanitizer does not see them: that thread is excluded once.
    to.qp.query();
    REQUIRE_FALSE(from.post(WrOpcode::rdma_write, 0, size, to.remote(), 8));
    REQUIRE_FALSE(from.send(0, 0));
    REQUIRE(next(to.recv_cq).wr_id == 3);  // a Send after it says that it is there
    REQUIRE(same(to.bytes(0, size), std::span(contents).first(size)));
    REQUIRE(std::all_of(to.memory.begin() + static_cast<ptrdiff_t>(size), to.memory.end(),
                        [](std::byte byte) { return byte == std::byte{0}; }));
    const WorkCompletion written = next(from.send_cq);
    REQUIRE(written.status == WcStatus::success);
    REQUIRE(written.opcode == WcOpcode::rdma_write);
    REQUIRE(written.wr_id == 8);
    REQUIRE(written.byte_count == size);
    next(from.send_cq);
  };
  for (size_t size : {size_t{0}, size_t{1}, size_t{3}, size_t{64}, size_t{1427}, size_t{65535},
                      size_t{262144}, size_t{1000003}, largest}) {
    INFO(size);
    check(a, b, size);
    check(b, a, size);
  }
}

TEST_CASE("An RDMA Write gathers several pieces, and inline data") {
  Couple couple({}, {.access = kOpen});
  RcParty& a = couple.a;
  a.fill(pattern(4096, 2));
  const std::array sges{a.mr->sge(100, 10), a.mr->sge(0, 0), a.mr->sge(1000, 600)};
  REQUIRE_FALSE(
      a.qp.post_send({.sges = sges, .opcode = WrOpcode::rdma_write, .remote = couple.b.remote(7)}));
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 50, 16, couple.b.remote(2000), 1,
                       SendFlags::inline_data | SendFlags::signaled));
  std::fill_n(a.memory.begin() + 50, 16, std::byte{0});
  couple.world.settle();
  const std::vector<std::byte> contents = pattern(4096, 2);
  CHECK(same(couple.b.bytes(7, 10), std::span(contents).subspan(100, 10)));
  CHECK(same(couple.b.bytes(17, 600), std::span(contents).subspan(1000, 600)));
  CHECK(same(couple.b.bytes(2000, 16), std::span(contents).subspan(50, 16)));
  CHECK(statuses(a.send_cq) == Statuses{WcStatus::success, WcStatus::success});
}

TEST_CASE("An RDMA Write is unknown to the target's application") {
  Couple couple({}, {.access = kOpen});
  couple.b.post_receives(1, 100);
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 100, couple.b.remote()));
  couple.world.settle();
  CHECK(drain(couple.b.recv_cq).empty());
  CHECK(couple.b.qp.query().posted_receives == 1);
  CHECK(drain(couple.b.send_cq).empty());
}

namespace {

/// The outcome of a Write to `remote`: the Terminate that the writer gets, and untouched memory.
void check_refused(Couple& couple, RemoteMemory remote, size_t length, TerminateCode code) {
  EventQueue events(couple.device_of_a());
  couple.a.fill(pattern(length, 3));
  const std::vector<std::byte> before = couple.b.memory;
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, length, remote));
  couple.world.settle();
  CHECK(couple.b.memory == before);
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.a.qp.state() == QpState::error);
  const QueuePairAttributes attributes = couple.a.qp.query();
  REQUIRE(attributes.terminate);
  CHECK(attributes.terminate->received);
  CHECK(to_string(attributes.terminate->code) == to_string(code));
  const std::optional<AsyncEvent> event = events.get_event(Duration::zero());
  REQUIRE(event);
  CHECK(event->type == AsyncEventType::qp_fatal);
  CHECK(event->qp_number == couple.a.qp.number());
  REQUIRE(event->terminate);
  CHECK(event->terminate->code == code);
  const QueuePairAttributes other = couple.b.qp.query();
  REQUIRE(other.terminate);
  CHECK_FALSE(other.terminate->received);
  CHECK(other.terminate->code == code);
}

}  // namespace

TEST_CASE("An RDMA Write to an unknown STag is refused, and nothing is written") {
  Couple couple({}, {.access = kOpen});
  check_refused(couple, {couple.b.mr->rkey() ^ 0x100, couple.b.remote().offset}, 10, {1, 1, 0});
}

TEST_CASE("An RDMA Write beyond its region is refused, and nothing is written") {
  Couple couple({}, {.access = kOpen});
  const size_t size = couple.b.memory.size();
  check_refused(couple, couple.b.remote(size - 9), 10, {1, 1, 1});
}

TEST_CASE("An RDMA Write before its region is refused, and nothing is written") {
  Couple couple({}, {.access = kOpen});
  check_refused(couple, couple.b.remote(static_cast<size_t>(-1)), 10, {1, 1, 1});
}

TEST_CASE("An RDMA Write without the right is refused, and nothing is written") {
  Couple couple({}, {.access = Access::local_write | Access::remote_read});
  check_refused(couple, couple.b.remote(), 10, {0, 1, 2});
}

TEST_CASE("An RDMA Write without the queue pair's right is refused, and nothing is written") {
  Couple couple({}, {.access = kOpen});
  couple.b.qp.set_remote_access(Access::remote_read | Access::remote_atomic);
  check_refused(couple, couple.b.remote(), 10, {0, 1, 2});
}

TEST_CASE("A queue pair has the rights to memory that it was given last") {
  Couple couple({}, {.access = kOpen});
  couple.b.qp.set_remote_access(Access::none);
  couple.b.qp.set_remote_access(Access::remote_write);
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 10, couple.b.remote()));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::success});
  CHECK(couple.b.qp.state() == QpState::rts);
}

TEST_CASE("An RDMA Write to memory of another protection domain is refused") {
  Couple couple({}, {.access = kOpen});
  const ProtectionDomain foreign(couple.device_of_b());
  std::vector<std::byte> memory(100);
  const MemoryRegion region(foreign, memory, kOpen);
  check_refused(couple, {region.rkey(), region.base()}, 10, {1, 1, 2});
  CHECK(memory == std::vector<std::byte>(100));
}

TEST_CASE("An RDMA Write to a deregistered region is refused") {
  Couple couple({}, {.access = kOpen});
  const RemoteMemory stale = couple.b.remote();
  couple.b.mr.reset();
  check_refused(couple, stale, 10, {1, 1, 0});
}

TEST_CASE("An RDMA Write of no length is not looked at") {
  Couple couple({}, {});
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 0, {12345, 6789}));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::success});
  CHECK(couple.b.qp.state() == QpState::rts);
}

TEST_CASE("A Write-Record is refused when it is posted, and the connection goes on") {
  Couple couple;
  SendWorkRequest request{.opcode = WrOpcode::write_record, .remote = couple.b.remote()};
  CHECK(couple.a.qp.post_send(request) == Errc::unsupported_operation);
  const Sge sge = couple.a.mr->sge(0, 10);
  request.sges = sge;
  CHECK(couple.a.qp.post_send(request) == Errc::unsupported_operation);
  CHECK(couple.a.qp.post_write_record({.remote = couple.b.remote()}) ==
        Errc::unsupported_operation);
  REQUIRE_FALSE(couple.b.post_recv(1, 0, 100));
  REQUIRE_FALSE(couple.a.send(0, 10));
  CHECK(step_until_completed(couple.world, couple.b.recv_cq));
}

TEST_CASE("A refused RDMA Write spoils no other connection of the target") {
  World world;
  RcParty a(world.add_device());
  Device& target = world.add_device();
  RcParty b(target, {.access = kOpen});
  RcParty c(world.add_device());
  RcParty d(target);
  join(a, b, llp::memory_stream_pair(1 << 20, 256));
  join(c, d, llp::memory_stream_pair(1 << 20, 256));
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, 10, {1, 2}));
  REQUIRE_FALSE(d.post_recv(0, 0, 100));
  REQUIRE_FALSE(c.send(0, 100));
  world.settle();
  CHECK(b.qp.state() == QpState::error);
  CHECK(statuses(d.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("A region's tagged offsets begin where its owner said") {
  Couple couple;
  std::vector<std::byte> memory(64);
  const MemoryRegion region(couple.b.pd, memory, kOpen, 0x1000);
  couple.a.fill(text("hello"));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 5, {region.rkey(), 0x1003}));
  couple.world.settle();
  CHECK(same(std::span(memory).subspan(3, 5), text("hello")));
}

TEST_CASE("Writes, Reads and atomic operations reach the last offset of 64 bits") {
  Couple couple;
  alignas(8) std::array<std::byte, 64> memory{};
  const MemoryRegion region(couple.b.pd, memory, kOpen, UINT64_MAX - 63);
  couple.a.fill(text("hello"));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_write, 0, 5, {region.rkey(), UINT64_MAX - 4}));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 100, 5, {region.rkey(), UINT64_MAX - 4}));
  REQUIRE_FALSE(couple.a.post(WrOpcode::fetch_add, 200, 8, {region.rkey(), UINT64_MAX - 7}));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses(3, WcStatus::success));
  CHECK(same(std::span(memory).last(5), text("hello")));
  CHECK(same(couple.a.bytes(100, 5), text("hello")));
  CHECK(same(couple.a.bytes(203, 5), text("hello")));
}

}  // namespace diwarp::test
