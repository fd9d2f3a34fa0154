// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "contract/pair.h"

/// RDMA Writes and Reads.
namespace diwarp::contract {

namespace {

PartyOptions open_memory(size_t size) { return {.memory = size, .access = kOpen}; }

/// A Write of `size` bytes, told by a Send after it.
void check_write(size_t size) {
  Pair pair(open_memory(size + 4096), open_memory(size + 4096));
  for (auto [from, to] : {std::pair(&pair.a, &pair.b), std::pair(&pair.b, &pair.a)}) {
    const uint64_t key = from->qp.number();
    from->fill(0, size, key);
    to->clear();
    REQUIRE_FALSE(to->post_recv(3, 0, 0));
    REQUIRE_FALSE(from->write(0, size, to->remote(10), 8));
    REQUIRE_FALSE(from->send(0, 0, 9));
    CHECK(next_good(to->recv_cq).wr_id == 3);
    CHECK(to->is_zero(0, 10));
    CHECK(to->holds(10, size, key));
    CHECK(to->is_zero(10 + size, 100));
    const WorkCompletion written = next_good(from->send_cq);
    CHECK(written.wr_id == 8);
    CHECK(written.opcode == WcOpcode::rdma_write);
    CHECK(written.byte_count == size);
    CHECK(written.qp_number == from->qp.number());
    CHECK(next_good(from->send_cq).wr_id == 9);
  }
}

void check_read(size_t size) {
  Pair pair(open_memory(size + 4096), open_memory(size + 4096));
  for (auto [reader, source] : {std::pair(&pair.a, &pair.b), std::pair(&pair.b, &pair.a)}) {
    const uint64_t key = source->qp.number();
    source->fill(20, size, key);
    reader->clear();
    REQUIRE_FALSE(reader->read(10, size, source->remote(20), 8));
    const WorkCompletion read = next_good(reader->send_cq);
    CHECK(read.wr_id == 8);
    CHECK(read.opcode == WcOpcode::rdma_read);
    CHECK(read.qp_number == reader->qp.number());
    CHECK(reader->is_zero(0, 10));
    CHECK(reader->holds(10, size, key));
    CHECK(reader->is_zero(10 + size, 100));
  }
}

}  // namespace

TEST_CASE("A Write of 0 bytes succeeds, both ways") { check_write(0); }

TEST_CASE("A Write of 1 byte is placed in the peer's memory and nowhere else, both ways") {
  check_write(1);
}

TEST_CASE("A Write of 4 KiB is placed in the peer's memory and nowhere else, both ways") {
  check_write(4 << 10);
}

TEST_CASE("A Write of 1 MiB is placed in the peer's memory and nowhere else, both ways") {
  check_write(1 << 20);
}

TEST_CASE("A Write is gathered from several SGEs") {
  Pair pair({}, open_memory(64 << 10));
  Party& a = pair.a;
  a.fill(0, 4096, 1);
  const std::array sges{a.mr->sge(0, 100), a.mr->sge(100, 0), a.mr->sge(100, 700)};
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 0));
  REQUIRE_FALSE(
      a.qp.post_send({.sges = sges, .opcode = WrOpcode::rdma_write, .remote = pair.b.remote(7)}));
  REQUIRE_FALSE(a.send(0, 0));
  next_good(pair.b.recv_cq);
  CHECK(pair.b.holds(7, 800, 1));
}

TEST_CASE("A Write of inline data may be overwritten at once") {
  Pair pair({}, open_memory(64 << 10));
  std::vector<std::byte> memory = contents(40, 9);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 0));
  REQUIRE_FALSE(pair.a.qp.post_send({.sges = Sge{memory.data(), 40, 0},
                                     .flags = SendFlags::inline_data,
                                     .opcode = WrOpcode::rdma_write,
                                     .remote = pair.b.remote()}));
  std::fill(memory.begin(), memory.end(), std::byte{0});
  REQUIRE_FALSE(pair.a.send(0, 0));
  next_good(pair.b.recv_cq);
  CHECK(pair.b.holds(0, 40, 9));
}

TEST_CASE("A Write takes no receive and is not told to the application of its target") {
  Pair pair({}, open_memory(64 << 10));
  pair.b.post_receives(2, 100);
  REQUIRE_FALSE(pair.a.write(0, 100, pair.b.remote(1000)));
  REQUIRE_FALSE(pair.a.send(0, 5));
  const WorkCompletion first = next_good(pair.b.recv_cq);
  CHECK(first.wr_id == 0);
  CHECK(first.byte_count == 5);
  CHECK(pair.b.qp.query().posted_receives == 1);
  CHECK_FALSE(pair.b.send_cq.wait(Duration::zero()));
}

TEST_CASE("A Read of 0 bytes succeeds, both ways") { check_read(0); }

TEST_CASE("A Read of 1 byte fetches the peer's memory, both ways") { check_read(1); }

TEST_CASE("A Read of 4 KiB fetches the peer's memory, both ways") { check_read(4 << 10); }

TEST_CASE("A Read of 1 MiB fetches the peer's memory, both ways") { check_read(1 << 20); }

TEST_CASE("A Read of nothing may have no SGE") {
  Pair pair({}, open_memory(4096));
  REQUIRE_FALSE(
      pair.a.qp.post_send({.wr_id = 5, .opcode = WrOpcode::rdma_read, .remote = pair.b.remote()}));
  CHECK(next_good(pair.a.send_cq).wr_id == 5);
}

TEST_CASE("The sink of a Read needs local_write only") {
  Pair pair({.access = kSink}, {.access = Access::remote_read});
  pair.b.fill(0, 1000, 6);
  REQUIRE_FALSE(pair.a.read(0, 1000, pair.b.remote()));
  next_good(pair.a.send_cq);
  CHECK(pair.a.holds(0, 1000, 6));
}

TEST_CASE("The completion of a Read tells how many bytes were read") {
  Pair pair({}, open_memory(4096));
  REQUIRE_FALSE(pair.a.read(0, 1000, pair.b.remote()));
  CHECK(next_good(pair.a.send_cq).byte_count == 1000);
}

TEST_CASE("More Reads may be posted than may be outstanding, and all are done, in order") {
  Pair pair({}, open_memory(64 << 10), {.ord = 2, .ird = 2}, {.ord = 2, .ird = 2});
  pair.b.fill(0, 5000, 2);
  for (uint64_t i = 0; i < 50; ++i)
    REQUIRE_FALSE(pair.a.read(i * 100, 100, pair.b.remote(i * 100), i));
  for (uint64_t i = 0; i < 50; ++i) CHECK(next_good(pair.a.send_cq).wr_id == i);
  CHECK(pair.a.holds(0, 5000, 2));
}

TEST_CASE("Requests of all kinds complete in the order in which they were posted") {
  Pair pair({}, open_memory(64 << 10));
  pair.b.post_receives(20, 100);
  for (uint64_t i = 0; i < 60; i += 3) {
    REQUIRE_FALSE(pair.a.read(0, 2000, pair.b.remote(4000), i));
    REQUIRE_FALSE(pair.a.write(3000, 2000, pair.b.remote(8000), i + 1));
    REQUIRE_FALSE(pair.a.send(3000, 100, i + 2));
  }
  for (uint64_t i = 0; i < 60; ++i) CHECK(next_good(pair.a.send_cq).wr_id == i);
  CHECK(take(pair.b.recv_cq, 20).size() == 20);
}

TEST_CASE("A Send after a Write tells that the Write is in place, many times") {
  constexpr size_t kSize = 5000;
  Pair pair({}, open_memory(64 << 10));
  for (uint64_t round = 0; round < 100; ++round) {
    REQUIRE_FALSE(pair.b.post_recv(round, 0, 0));
    pair.a.fill(0, kSize, round);
    REQUIRE_FALSE(pair.a.write(0, kSize, pair.b.remote(round)));
    REQUIRE_FALSE(pair.a.send(0, 0));
    REQUIRE(next_good(pair.b.recv_cq).wr_id == round);
    REQUIRE(pair.b.holds(round, kSize, round));
    take(pair.a.send_cq, 2);
  }
}

TEST_CASE("A Read sees what was written before it on the same connection") {
  Pair pair({}, open_memory(64 << 10));
  for (uint64_t round = 0; round < 50; ++round) {
    pair.a.fill(0, 3000, round);
    REQUIRE_FALSE(pair.a.write(0, 3000, pair.b.remote(100)));
    REQUIRE_FALSE(pair.a.read(8000, 3000, pair.b.remote(100)));
    next_good(pair.a.send_cq);
    next_good(pair.a.send_cq);
    REQUIRE(pair.a.holds(8000, 3000, round));
  }
}

TEST_CASE("A fenced Send begins when earlier Reads are done: it carries what they fetched") {
  constexpr size_t kSize = 10'000;
  Pair pair({}, open_memory(64 << 10));
  for (uint64_t round = 0; round < 50; ++round) {
    pair.a.clear();
    pair.b.fill(0, kSize, round);
    REQUIRE_FALSE(pair.b.post_recv(round, 20'000, kSize));
    REQUIRE_FALSE(pair.a.read(0, kSize, pair.b.remote(), 1));
    REQUIRE_FALSE(pair.a.send(0, kSize, 2, SendFlags::signaled | SendFlags::fence));
    REQUIRE(next_good(pair.b.recv_cq).byte_count == kSize);
    REQUIRE(pair.b.holds(20'000, kSize, round));
    take(pair.a.send_cq, 2);
  }
}

TEST_CASE("Reads of both sides at the same time are answered") {
  Pair pair(open_memory(1 << 20), open_memory(1 << 20));
  constexpr size_t kSize = 400'000;
  pair.a.fill(0, kSize, 1);
  pair.b.fill(0, kSize, 2);
  for (int i = 0; i < 8; ++i) {
    REQUIRE_FALSE(pair.a.read(kSize, kSize, pair.b.remote()));
    REQUIRE_FALSE(pair.b.read(kSize, kSize, pair.a.remote()));
  }
  for (int i = 0; i < 8; ++i) {
    next_good(pair.a.send_cq);
    next_good(pair.b.send_cq);
  }
  CHECK(pair.a.holds(kSize, kSize, 2));
  CHECK(pair.b.holds(kSize, kSize, 1));
}

}  // namespace diwarp::contract
