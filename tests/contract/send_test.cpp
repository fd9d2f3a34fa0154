// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "contract/pair.h"

/// Sends and receives.
namespace diwarp::contract {

namespace {

/// One Send of `size` bytes from `from`, into a receive that has room for more.
void check_send(Party& from, Party& to, size_t size, uint64_t key) {
  to.clear();
  from.fill(0, size, key);
  const size_t room = std::min(size + 100, to.pages.bytes().size());
  REQUIRE_FALSE(to.post_recv(7, 0, room));
  REQUIRE_FALSE(from.send(0, size, 8));
  const WorkCompletion received = next_good(to.recv_cq);
  CHECK(received.byte_count == size);
  CHECK(to.holds(0, size, key));
  CHECK(to.is_zero(size, room - size));
  next_good(from.send_cq);
}

void check_both_ways(size_t size) {
  Pair pair({.memory = size + 4096}, {.memory = size + 4096});
  check_send(pair.a, pair.b, size, 1);
  check_send(pair.b, pair.a, size, 2);
}

/// The bytes that the SGEs name, one after the other.
std::vector<std::byte> gathered(std::span<const Sge> sges) {
  std::vector<std::byte> bytes;
  for (const Sge& sge : sges) {
    const auto* const at = static_cast<const std::byte*>(sge.address);
    bytes.insert(bytes.end(), at, at + sge.length);
  }
  return bytes;
}

}  // namespace

TEST_CASE("A Send of 0 bytes arrives, both ways") { check_both_ways(0); }

TEST_CASE("A Send of 1 byte arrives whole, both ways") { check_both_ways(1); }

TEST_CASE("A Send of 4 KiB arrives whole, both ways") { check_both_ways(4 << 10); }

TEST_CASE("A Send of 1 MiB arrives whole, both ways") { check_both_ways(1 << 20); }

TEST_CASE("A Send without any SGE takes a receive without any SGE") {
  Pair pair;
  REQUIRE_FALSE(pair.b.qp.post_recv({.wr_id = 1}));
  REQUIRE_FALSE(pair.a.qp.post_send({.wr_id = 2}));
  const WorkCompletion received = next_good(pair.b.recv_cq);
  CHECK(received.wr_id == 1);
  CHECK(received.byte_count == 0);
  CHECK(next_good(pair.a.send_cq).wr_id == 2);
}

TEST_CASE("A Send may be as long as the receive that it finds") {
  Pair pair;
  pair.a.fill(0, 1000, 5);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 1000));
  REQUIRE_FALSE(pair.a.send(0, 1000));
  CHECK(next_good(pair.b.recv_cq).byte_count == 1000);
  CHECK(pair.b.holds(0, 1000, 5));
}

TEST_CASE("The completion of a receive tells its request, queue pair and length") {
  Pair pair;
  REQUIRE_FALSE(pair.b.post_recv(0x1234'5678'9abc'def0, 0, 100));
  REQUIRE_FALSE(pair.a.send(0, 60, 1));
  const WorkCompletion received = next_good(pair.b.recv_cq);
  CHECK(received.wr_id == 0x1234'5678'9abc'def0);
  CHECK(received.opcode == WcOpcode::recv);
  CHECK(received.byte_count == 60);
  CHECK(received.qp_number == pair.b.qp.number());
  CHECK_FALSE(received.solicited);
  CHECK_FALSE(received.invalidated);
  CHECK_FALSE(received.has_immediate);
}

TEST_CASE("The completion of a Send tells its request, queue pair and length") {
  Pair pair;
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 100));
  REQUIRE_FALSE(pair.a.send(0, 60, 0xfedc'ba98'7654'3210));
  const WorkCompletion sent = next_good(pair.a.send_cq);
  CHECK(sent.wr_id == 0xfedc'ba98'7654'3210);
  CHECK(sent.opcode == WcOpcode::send);
  CHECK(sent.byte_count == 60);
  CHECK(sent.qp_number == pair.a.qp.number());
}

TEST_CASE("A Send is gathered from several SGEs, in their order") {
  Pair pair;
  Party& a = pair.a;
  a.fill(0, 4096, 3);
  const std::array sges{a.mr->sge(3000, 1), a.mr->sge(100, 500), a.mr->sge(0, 0),
                        a.mr->sge(50, 77)};
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 1000));
  REQUIRE_FALSE(a.qp.post_send({.sges = sges}));
  CHECK(next_good(pair.b.recv_cq).byte_count == 578);
  const auto placed = pair.b.bytes(0, 578);
  const std::vector<std::byte> expected = gathered(sges);
  CHECK(std::equal(placed.begin(), placed.end(), expected.begin()));
}

TEST_CASE("A receive is scattered over several SGEs, in their order") {
  Pair pair;
  Party& b = pair.b;
  pair.a.fill(0, 700, 4);
  const std::array sges{b.mr->sge(2000, 10), b.mr->sge(0, 0), b.mr->sge(0, 600),
                        b.mr->sge(900, 200)};
  REQUIRE_FALSE(b.qp.post_recv({.sges = sges}));
  REQUIRE_FALSE(pair.a.send(0, 700));
  CHECK(next_good(b.recv_cq).byte_count == 700);
  std::vector<std::byte> placed = gathered(sges);
  placed.resize(700);
  CHECK_FALSE(test::first_wrong(placed, 4));
  CHECK(b.is_zero(990, 110));  // beyond the message
}

TEST_CASE("SGEs of one request may lie in different regions") {
  Pair pair;
  const Pages pages(4096);
  const MemoryRegion second(pair.a.pd, pages.bytes());
  test::fill(pages.bytes().first(10), 1, 6);
  pair.a.fill(0, 6, 1);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 100));
  REQUIRE_FALSE(pair.a.qp.post_send({.sges = {pair.a.mr->sge(0, 6), second.sge(0, 10)}}));
  CHECK(next_good(pair.b.recv_cq).byte_count == 16);
  CHECK(pair.b.holds(0, 16, 1));
}

TEST_CASE("The list of SGEs may be changed when the request is posted") {
  Pair pair;
  pair.a.fill(0, 100, 2);
  Sge to = pair.b.mr->sge(0, 100);
  REQUIRE_FALSE(pair.b.qp.post_recv({.sges = {&to, 1}}));
  to = {};
  Sge from = pair.a.mr->sge(0, 100);
  REQUIRE_FALSE(pair.a.qp.post_send({.sges = {&from, 1}}));
  from = {};
  CHECK(next_good(pair.b.recv_cq).byte_count == 100);
  CHECK(pair.b.holds(0, 100, 2));
}

TEST_CASE("Inline data may be overwritten at once, and need no region") {
  Pair pair;
  constexpr size_t kMessages = 20;
  pair.b.post_receives(kMessages, 64);
  std::vector<std::byte> memory(48);
  for (uint64_t i = 0; i < kMessages; ++i) {
    test::fill(memory, i);
    const Sge sge{memory.data(), 48, 0};
    REQUIRE_FALSE(
        pair.a.qp.post_send({.sges = sge, .flags = SendFlags::inline_data | SendFlags::signaled}));
    std::fill(memory.begin(), memory.end(), std::byte{0xff});
  }
  for (uint64_t i = 0; i < kMessages; ++i) {
    CHECK(next_good(pair.b.recv_cq).byte_count == 48);
    CHECK(pair.b.holds(i * 64, 48, i));
  }
}

TEST_CASE("Inline data are gathered from several SGEs") {
  Pair pair;
  std::vector<std::byte> memory = contents(30, 8);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 100));
  REQUIRE_FALSE(
      pair.a.qp.post_send({.sges = {Sge{memory.data(), 10, 0}, Sge{memory.data() + 10, 20, 0}},
                           .flags = SendFlags::inline_data}));
  CHECK(next_good(pair.b.recv_cq).byte_count == 30);
  CHECK(pair.b.holds(0, 30, 8));
}

TEST_CASE("An unsignaled Send has no completion when it succeeds") {
  Pair pair;
  pair.b.post_receives(3, 100);
  REQUIRE_FALSE(pair.a.send(0, 10, 1, SendFlags::none));
  REQUIRE_FALSE(pair.a.send(0, 10, 2));
  REQUIRE_FALSE(pair.a.send(0, 10, 3, SendFlags::none));
  take(pair.b.recv_cq, 3);
  CHECK(next_good(pair.a.send_cq).wr_id == 2);
  CHECK_FALSE(pair.a.send_cq.wait(kMoment));
}

TEST_CASE("With signal_all every Send has a completion") {
  Pair pair({.signal_all = true});
  pair.b.post_receives(2, 100);
  REQUIRE_FALSE(pair.a.send(0, 10, 1, SendFlags::none));
  REQUIRE_FALSE(pair.a.send(0, 10, 2));
  CHECK(next_good(pair.a.send_cq).wr_id == 1);
  CHECK(next_good(pair.a.send_cq).wr_id == 2);
}

TEST_CASE("A solicited Send is told as such at the receiver") {
  if (!needs(Capability::solicited_events)) return;
  Pair pair;
  pair.b.post_receives(3, 100);
  REQUIRE_FALSE(pair.a.send(0, 10, 1, SendFlags::solicited));
  REQUIRE_FALSE(pair.a.send(0, 10, 2, SendFlags::none));
  REQUIRE_FALSE(pair.a.send(0, 0, 3, SendFlags::solicited));
  CHECK(next_good(pair.b.recv_cq).solicited);
  CHECK_FALSE(next_good(pair.b.recv_cq).solicited);
  CHECK(next_good(pair.b.recv_cq).solicited);
}

TEST_CASE("Sends arrive in the order in which they were posted, each in the next receive") {
  constexpr uint64_t kMessages = 1000;
  constexpr size_t kSlots = 64;
  Pair pair;
  pair.b.post_receives(kSlots, 256);
  uint64_t posted = 0;
  for (uint64_t received = 0; received < kMessages; ++received) {
    for (; posted < kMessages && posted < received + kSlots; ++posted) {
      const size_t at = posted % kSlots * 256;
      std::memcpy(pair.a.bytes(at, 8).data(), &posted, 8);
      REQUIRE_FALSE(pair.a.send(at, 8 + posted % 200, posted));
    }
    const WorkCompletion came = next_good(pair.b.recv_cq);
    REQUIRE(came.wr_id == received % kSlots);
    REQUIRE(came.byte_count == 8 + received % 200);
    uint64_t number = 0;
    std::memcpy(&number, pair.b.bytes(came.wr_id * 256, 8).data(), 8);
    REQUIRE(number == received);
    REQUIRE(next_good(pair.a.send_cq).wr_id == received);
    REQUIRE_FALSE(pair.b.post_recv(came.wr_id, came.wr_id * 256, 256));
  }
}

TEST_CASE("Large Sends pass both ways at the same time") {
  constexpr size_t kSize = 1 << 20;
  Pair pair({.memory = 2 * kSize}, {.memory = 2 * kSize});
  pair.a.fill(0, kSize, 1);
  pair.b.fill(0, kSize, 2);
  for (Party* party : {&pair.a, &pair.b}) REQUIRE_FALSE(party->post_recv(1, kSize, kSize));
  for (Party* party : {&pair.a, &pair.b}) REQUIRE_FALSE(party->send(0, kSize));
  for (Party* party : {&pair.a, &pair.b}) {
    CHECK(next_good(party->recv_cq).byte_count == kSize);
    next_good(party->send_cq);
  }
  CHECK(pair.a.holds(kSize, kSize, 2));
  CHECK(pair.b.holds(kSize, kSize, 1));
}

}  // namespace diwarp::contract
