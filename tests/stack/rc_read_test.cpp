// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "stack/rc_support.h"

/// RDMA Reads fetch the peer's memory, as many at a time as was agreed.
namespace diwarp::test {

TEST_CASE("RDMA Reads of 0 bytes to 8 MiB fetch what is there over TCP, both ways") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  const size_t largest = (8 << 20) + 1;
  RcParty a(one, {.memory = largest, .access = kOpen});
  RcParty b(other, {.memory = largest, .access = kOpen});
  connect(a, b, other);
  const std::vector<std::byte> contents = pattern(largest, 1);
  const auto check = [&](RcParty& reader, RcParty& source, size_t size) {
    source.fill(contents);
    std::fill(reader.memory.begin(), reader.memory.end(), std::byte{0});
    REQUIRE_FALSE(reader.post(WrOpcode::rdma_read, 0, size, source.remote(), 8));
    const WorkCompletion read = next(reader.send_cq);
    REQUIRE(read.status == WcStatus::success);
    REQUIRE(read.opcode == WcOpcode::rdma_read);
    REQUIRE(read.wr_id == 8);
    REQUIRE(read.byte_count == size);
    REQUIRE(same(reader.bytes(0, size), std::span(contents).first(size)));
    REQUIRE(std::all_of(reader.memory.begin() + static_cast<ptrdiff_t>(size), reader.memory.end(),
                        [](std::byte byte) { return byte == std::byte{0}; }));
  };
  for (size_t size : {size_t{0}, size_t{1}, size_t{3}, size_t{64}, size_t{1427}, size_t{65535},
                      size_t{262144}, size_t{1000003}, largest}) {
    INFO(size);
    check(a, b, size);
    check(b, a, size);
  }
}

TEST_CASE("Reads in both directions, Writes and Sends get along") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  const size_t part = 100000;
  RcParty a(one, {.memory = 4 * part, .access = kOpen});
  RcParty b(other, {.memory = 4 * part, .access = kOpen});
  connect(a, b, other);
  a.fill(pattern(2 * part, 1));
  b.fill(pattern(2 * part, 2));
  for (int round = 0; round < 20; ++round) {
    for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
      REQUIRE_FALSE(to->post_recv(9, 0, 0));
      REQUIRE_FALSE(from->post(WrOpcode::rdma_read, 2 * part, part, to->remote(), 1));
      REQUIRE_FALSE(from->post(WrOpcode::rdma_write, part, part, to->remote(3 * part), 2));
      REQUIRE_FALSE(from->send(0, 0, 3));
    }
    for (RcParty* party : {&a, &b}) {
      for (uint64_t wr_id : {1U, 2U, 3U}) {
        const WorkCompletion done = next(party->send_cq);
        REQUIRE(done.wr_id == wr_id);  // in the order of posting
        REQUIRE(done.status == WcStatus::success);
      }
      REQUIRE(next(party->recv_cq).status == WcStatus::success);
    }
    REQUIRE(same(a.bytes(2 * part, part), b.bytes(0, part)));
    REQUIRE(same(b.bytes(2 * part, part), a.bytes(0, part)));
    REQUIRE(same(a.bytes(3 * part, part), b.bytes(part, part)));
    REQUIRE(same(b.bytes(3 * part, part), a.bytes(part, part)));
  }
}

TEST_CASE("No more Reads are outstanding than were agreed, and all are done") {
  Couple couple({}, {.access = kOpen}, {.ord = 2, .ird = 5});
  couple.b.fill(pattern(1000, 4));
  for (uint64_t i = 0; i < 10; ++i)
    REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, i * 100, 100, couple.b.remote(i * 100), i));
  couple.device_of_a().progress();
  couple.device_of_a().progress();
  CHECK(couple.device_of_a().counter("rc_tx_fpdus") == 2);
  couple.world.settle();
  CHECK(couple.device_of_a().counter("rc_tx_fpdus") == 10);
  CHECK(statuses(couple.a.send_cq) == Statuses(10, WcStatus::success));
  CHECK(same(couple.a.bytes(0, 1000), couple.b.bytes(0, 1000)));
  CHECK(couple.a.qp.query().ord == 2);
  CHECK(couple.b.qp.query().ird == 2);
}

TEST_CASE("A connection without Reads fails them locally") {
  Couple couple({}, {.access = kOpen}, {.ord = 0});
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 10, couple.b.remote()));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::local_qp_operation_error});
  CHECK(couple.a.qp.state() == QpState::error);
}

TEST_CASE("A fenced request begins only when earlier Reads are done, another one does not wait") {
  Couple couple({}, {.access = kOpen});
  RcParty& a = couple.a;
  const bool fenced = GENERATE(true, false);
  REQUIRE_FALSE(couple.b.post_recv(0, 0, 100));
  REQUIRE_FALSE(a.post(WrOpcode::rdma_read, 0, 100, couple.b.remote(), 1));
  REQUIRE_FALSE(
      a.send(200, 50, 2, fenced ? SendFlags::signaled | SendFlags::fence : SendFlags::signaled));
  couple.device_of_a().progress();
  CHECK(couple.device_of_a().counter("rc_tx_fpdus") == (fenced ? 1 : 2));
  couple.world.settle();
  CHECK(statuses(a.send_cq) == Statuses{WcStatus::success, WcStatus::success});
  CHECK(statuses(couple.b.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("A Read sees what was written before it on the same connection") {
  Couple couple({.access = kOpen}, {.access = kOpen});
  RcParty& a = couple.a;
  for (uint8_t round = 1; round < 100; ++round) {
    std::fill_n(a.memory.begin(), 1000, std::byte{round});
    REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, 1000, couple.b.remote()));
    REQUIRE_FALSE(a.post(WrOpcode::rdma_read, 2000, 1000, couple.b.remote()));
    couple.world.settle();
    REQUIRE(same(a.bytes(0, 1000), a.bytes(2000, 1000)));
    drain(a.send_cq);
  }
}

TEST_CASE("Unsignaled Reads give no completion, failed ones do") {
  Couple couple({}, {.access = kOpen});
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 10, couple.b.remote(), 1, SendFlags::none));
  couple.world.settle();
  CHECK(drain(couple.a.send_cq).empty());
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 10, {1, 1}, 2, SendFlags::none));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::remote_access_error});
}

namespace {

void check_read_refused(Couple& couple, RemoteMemory remote, TerminateCode code) {
  couple.a.fill(pattern(100, 1));
  const std::vector<std::byte> before = couple.a.memory;
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 50, remote, 1));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 50, 50, couple.b.remote(), 2));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) ==
        Statuses{WcStatus::remote_access_error, WcStatus::wr_flush_error});
  CHECK(couple.a.memory == before);
  const QueuePairAttributes attributes = couple.a.qp.query();
  REQUIRE(attributes.terminate);
  CHECK(attributes.terminate->received);
  CHECK(to_string(attributes.terminate->code) == to_string(code));
  CHECK(attributes.terminate->headers.size() == 18 + 28);  // the Read Request's
}

}  // namespace

TEST_CASE("A Read of an unknown STag is refused to the reader") {
  Couple couple({}, {.access = kOpen});
  check_read_refused(couple, {couple.b.mr->rkey() ^ 0x100, 0}, {0, 1, 0});
}

TEST_CASE("A Read beyond the region is refused to the reader") {
  Couple couple({}, {.access = kOpen});
  check_read_refused(couple, couple.b.remote(couple.b.memory.size() - 49), {0, 1, 1});
}

TEST_CASE("A Read without the right is refused to the reader") {
  Couple couple({}, {.access = Access::local_write | Access::remote_write});
  check_read_refused(couple, couple.b.remote(), {0, 1, 2});
}

TEST_CASE("A Read without the queue pair's right is refused to the reader") {
  Couple couple({}, {.access = kOpen});
  couple.b.qp.set_remote_access(Access::remote_write | Access::remote_atomic);
  check_read_refused(couple, couple.b.remote(), {0, 1, 2});
}

TEST_CASE("A Read from another protection domain is refused to the reader") {
  Couple couple({}, {.access = kOpen});
  const ProtectionDomain foreign(couple.device_of_b());
  std::vector<std::byte> memory(100);
  const MemoryRegion region(foreign, memory, kOpen);
  check_read_refused(couple, {region.rkey(), region.base()}, {0, 1, 3});
}

TEST_CASE("A Read of no length is not looked at") {
  Couple couple;
  REQUIRE_FALSE(
      couple.a.qp.post_send({.wr_id = 5, .opcode = WrOpcode::rdma_read, .remote = {12345, 6789}}));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::success});
  CHECK(couple.b.qp.state() == QpState::rts);
}

TEST_CASE("A Read into memory that may not be written fails before anything is sent") {
  Couple couple({.access = Access::none}, {.access = kOpen});
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 10, couple.b.remote()));
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::local_protection_error});
}

TEST_CASE("A Read takes one SGE and no inline data") {
  Couple couple({}, {.access = kOpen});
  const std::array sges{couple.a.mr->sge(0, 1), couple.a.mr->sge(2, 1)};
  CHECK(couple.a.qp.post_send({.sges = sges, .opcode = WrOpcode::rdma_read}) ==
        Errc::too_many_sges);
  CHECK(couple.a.post(WrOpcode::rdma_read, 0, 1, couple.b.remote(), 0, SendFlags::inline_data) ==
        Errc::invalid_argument);
  CHECK(couple.a.qp.post_send({.opcode = WrOpcode::rdma_read_with_invalidate}) ==
        Errc::invalid_argument);
}

TEST_CASE("Memory that goes away while it is read ends the connection, and nothing else") {
  Couple couple({.memory = 4 << 20}, {.memory = 4 << 20, .access = kOpen});
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 4 << 20, couple.b.remote()));
  couple.device_of_a().progress();
  couple.device_of_b().progress();
  couple.b.mr.reset();
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::remote_access_error});
  CHECK(couple.b.qp.state() == QpState::error);
}

TEST_CASE("The reader's memory that goes away is not written") {
  Couple couple({.memory = 1 << 20}, {.memory = 1 << 20, .access = kOpen});
  couple.b.fill(pattern(1 << 20, 1));
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 1 << 20, couple.b.remote()));
  couple.device_of_a().progress();
  couple.a.mr.reset();
  const std::vector<std::byte> before = couple.a.memory;
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::local_protection_error});
  CHECK(couple.a.memory == before);
}

#ifndef __SANITIZE_THREAD__  // a race between an owner and a remote reader is what this is about
TEST_CASE("Memory that changes while it is read breaks no CRC") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one, {.memory = 1 << 20});
  RcParty b(other, {.memory = 1 << 20, .access = kOpen});
  connect(a, b, other);
  std::atomic<bool> stop{false};
  std::thread owner([&] {
    for (uint8_t value = 0; !stop.load(); ++value)
      for (size_t i = 0; i < b.memory.size(); i += 64)
        std::atomic_ref<std::byte>(b.memory[i]).store(std::byte{value}, std::memory_order_relaxed);
  });
  bool good = true;
  for (int round = 0; round < 50 && good; ++round) {
    good = !a.post(WrOpcode::rdma_read, 0, 1 << 20, b.remote());
    const std::optional<WorkCompletion> read = a.send_cq.wait(kPatience);
    good = good && read && read->status == WcStatus::success;
  }
  stop = true;
  owner.join();
  CHECK(good);
}
#endif

TEST_CASE("A response after a Write finds memory for its copy after a pause") {
  World world;
  RcParty a(world.add_device(), {.access = kOpen});
  RcParty b(world.add_device(), {.access = kOpen});
  join(a, b, llp::memory_stream_pair(4096, 256));
  a.fill(pattern(a.memory.size(), 1));
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, 0, b.remote()));  // b may send now
  REQUIRE_FALSE(b.post(WrOpcode::rdma_read, 0, 2000, a.remote(), 1));
  world.settle();
  // The memory of copies is given back when it was not used from one look to the next.
  for (int i = 0; i < 3; ++i) world.advance(rnic::kTrimAfter);
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, 20000, b.remote(), 2));  // waits for room
  REQUIRE_FALSE(b.post(WrOpcode::rdma_read, 30000, 3000, a.remote(30000), 3));
  world.settle();
  CHECK(same(b.bytes(30000, 3000), a.bytes(30000, 3000)));
  CHECK(statuses(b.send_cq) == std::vector(2, WcStatus::success));
}

TEST_CASE("Outstanding Reads are flushed when the peer ends the connection") {
  Couple couple({}, {.access = kOpen});
  REQUIRE_FALSE(couple.a.post(WrOpcode::rdma_read, 0, 10, couple.b.remote()));
  couple.device_of_a().progress();
  couple.b.qp.modify(QpState::error);
  couple.world.settle();
  CHECK(statuses(couple.a.send_cq) == Statuses{WcStatus::wr_flush_error});
}

}  // namespace diwarp::test
