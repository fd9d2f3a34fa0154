// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "contract/pair.h"

/// What may be posted, and how much of it.
namespace diwarp::contract {

namespace {

/// More than any queue takes that was asked to take 16.
constexpr uint64_t kManyMore = 100'000;

std::vector<SendWorkRequest> sends_of(const Party& party, size_t count) {
  std::vector<SendWorkRequest> requests(count);
  for (size_t i = 0; i < count; ++i) {
    requests[i].wr_id = i;
    requests[i].sges = party.mr->sge(i, 1);
  }
  return requests;
}

}  // namespace

TEST_CASE("In init receives may be posted, and sends are refused with invalid_state") {
  const Device device = open_device();
  Party party(device);
  CHECK_FALSE(party.post_recv(1, 0, 100));
  CHECK(party.send(0, 10) == Errc::invalid_state);
  CHECK(party.qp.query().posted_receives == 1);
}

TEST_CASE("In reset nothing may be posted") {
  const Device device = open_device();
  Party party(device);
  party.qp.modify(QpState::error);
  party.qp.modify(QpState::reset);
  CHECK(party.post_recv(1, 0, 100) == Errc::invalid_state);
  CHECK(party.send(0, 10) == Errc::invalid_state);
}

TEST_CASE("What is posted in error is flushed, after all that was flushed before") {
  Pair pair;
  pair.a.post_receives(3, 100);
  pair.a.qp.modify(QpState::error);
  CHECK_FALSE(pair.a.post_recv(3, 0, 100));
  CHECK_FALSE(pair.a.send(0, 10, 4, SendFlags::none));
  for (uint64_t id = 0; id < 4; ++id) {
    const WorkCompletion flushed = next(pair.a.recv_cq);
    CHECK(flushed.wr_id == id);
    CHECK(flushed.status == WcStatus::wr_flush_error);
    CHECK(flushed.opcode == WcOpcode::recv);
  }
  const WorkCompletion flushed = next(pair.a.send_cq);
  CHECK(flushed.wr_id == 4);
  CHECK(flushed.status == WcStatus::wr_flush_error);
  CHECK(pair.a.qp.query().posted_receives == 0);
  CHECK(pair.a.qp.query().posted_sends == 0);
}

TEST_CASE("In error a full queue says queue_full, too, and has room again after polling") {
  const Device device = open_device();
  Party party(device, {.entries = 16, .capacity = {.max_send_wr = 16, .max_recv_wr = 16}});
  party.qp.modify(QpState::error);
  const auto fill = [](auto post) {
    uint64_t posted = 0;
    std::error_code error;
    while (posted < kManyMore && !(error = post(posted))) ++posted;
    CHECK(error == Errc::queue_full);
    return posted;
  };
  const auto send = [&](uint64_t id) { return party.send(0, 10, id); };
  const auto receive = [&](uint64_t id) { return party.post_recv(id, 0, 10); };
  const uint64_t sends = fill(send);
  const uint64_t receives = fill(receive);
  for (uint64_t id = 0; id < sends; ++id) CHECK(next(party.send_cq).wr_id == id);
  for (uint64_t id = 0; id < receives; ++id) CHECK(next(party.recv_cq).wr_id == id);
  CHECK_FALSE(send(0));
  CHECK_FALSE(receive(0));
}

TEST_CASE("A queue in error wakes the thread that waits for what is posted there") {
  const Device device = open_device();
  Party party(device);
  party.qp.modify(QpState::error);
  auto waiting = std::async(std::launch::async, [&] { return party.send_cq.wait(kPatience); });
  CHECK_FALSE(party.send(0, 10, 9));
  const std::optional<WorkCompletion> flushed = waiting.get();
  REQUIRE(flushed);
  CHECK(flushed->wr_id == 9);
  CHECK(flushed->status == WcStatus::wr_flush_error);
}

TEST_CASE("More SGEs than the queue pair has are refused with too_many_sges") {
  Pair pair({.capacity = {.max_send_sge = 2, .max_recv_sge = 1}});
  const auto capacity = pair.a.qp.query().capacity;
  const size_t count = std::max(capacity.max_send_sge, capacity.max_recv_sge) + 1;
  const std::vector<Sge> sges(count, pair.a.mr->sge(0, 1));
  CHECK(pair.a.qp.post_send({.sges = sges}) == Errc::too_many_sges);
  CHECK(pair.a.qp.post_recv({.sges = sges}) == Errc::too_many_sges);
  check_message(pair.a, pair.b);
}

TEST_CASE("More inline data than the queue pair has are refused with inline_too_large") {
  Pair pair;
  const size_t most = pair.a.qp.query().capacity.max_inline_data;
  CHECK(pair.a.send(0, most + 1, 1, SendFlags::inline_data) == Errc::inline_too_large);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, most));
  CHECK_FALSE(pair.a.send(0, most, 1, SendFlags::inline_data));
  CHECK(next_good(pair.b.recv_cq).byte_count == most);
}

TEST_CASE("Messages longer than 1 GiB are refused with message_too_large") {
  Pair pair;
  std::byte* const memory = pair.a.pages.bytes().data();
  const STag lkey = pair.a.mr->lkey();
  const Sge too_long{memory, static_cast<uint32_t>(kMaxMessage + 1), lkey};
  CHECK(pair.a.qp.post_send({.sges = too_long}) == Errc::message_too_large);
  const Sge half{memory, static_cast<uint32_t>(kMaxMessage / 2 + 1), lkey};
  CHECK(pair.a.qp.post_send({.sges = {half, half}}) == Errc::message_too_large);
  const Sge longest{memory, std::numeric_limits<uint32_t>::max(), lkey};
  CHECK(pair.a.qp.post_recv({.sges = {longest, longest}}) == Errc::message_too_large);
  check_message(pair.a, pair.b);
}

TEST_CASE("A Read into more than one SGE is refused") {
  Pair pair({}, {.access = kOpen});
  CHECK(pair.a.qp.post_send({.sges = {pair.a.mr->sge(0, 8), pair.a.mr->sge(8, 8)},
                             .opcode = WrOpcode::rdma_read,
                             .remote = pair.b.remote()}));
  check_message(pair.a, pair.b);
}

TEST_CASE("Inline data for a Read are refused with invalid_argument") {
  Pair pair({}, {.access = kOpen});
  CHECK(pair.a.post(WrOpcode::rdma_read, 0, 8, pair.b.remote(), 1, SendFlags::inline_data) ==
        Errc::invalid_argument);
}

TEST_CASE("Tagged offsets beyond 2^64 are refused with invalid_argument") {
  Pair pair({}, {.access = kOpen});
  const RemoteMemory near_the_end{pair.b.mr->rkey(), ~uint64_t{0} - 50};
  CHECK(pair.a.write(0, 100, near_the_end) == Errc::invalid_argument);
  CHECK(pair.a.post(WrOpcode::rdma_read, 0, 100, near_the_end) == Errc::invalid_argument);
  const RemoteMemory last_bytes{pair.b.mr->rkey(), ~uint64_t{0} - 3};
  if (has(pair.device_a.query().capabilities, Capability::atomics))
    CHECK(pair.a.post(WrOpcode::fetch_add, 0, 8, last_bytes) == Errc::invalid_argument);
  CHECK(pair.a.qp.state() == QpState::rts);
  check_message(pair.a, pair.b);
}

TEST_CASE("Operations over datagrams are refused with unsupported_operation") {
  Pair pair;
  CHECK(pair.a.qp.post_write_record({.sges = pair.a.mr->sge(0, 10)}) ==
        Errc::unsupported_operation);
  CHECK(refusal([&] { pair.a.qp.set_max_rate(1000); }) == Errc::unsupported_operation);
  CHECK(refusal([&] { pair.a.qp.poll_error(); }) == Errc::unsupported_operation);
  CHECK(refusal([&] { pair.a.qp.peers(); }) == Errc::unsupported_operation);
  check_message(pair.a, pair.b);
}

TEST_CASE("A full receive queue says queue_full, and has room again after polling") {
  Pair pair({}, {.capacity = {.max_recv_wr = 16}});
  uint64_t posted = 0;
  std::error_code error;
  while (!(error = pair.b.post_recv(posted, 0, 100)) && posted < kManyMore) ++posted;
  CHECK(error == Errc::queue_full);
  CHECK(posted >= 16);
  CHECK(pair.b.qp.query().posted_receives == posted);
  REQUIRE_FALSE(pair.a.send(0, 10));
  next_good(pair.b.recv_cq);
  CHECK_FALSE(pair.b.post_recv(1, 0, 100));
  CHECK(pair.b.post_recv(2, 0, 100) == Errc::queue_full);
}

TEST_CASE("A full send queue says queue_full, and has room again after polling") {
  Pair pair({.entries = 1, .capacity = {.max_send_wr = 16}}, {.access = kOpen});
  uint64_t posted = 0;
  std::error_code error;
  // Completions that find no room keep the places of their requests.
  while (!(error = pair.a.write(0, 1, pair.b.remote(), posted)) && posted < kManyMore) ++posted;
  CHECK(error == Errc::queue_full);
  CHECK(posted >= 16);
  for (uint64_t i = 0; i < posted; ++i) REQUIRE(next_good(pair.a.send_cq).wr_id == i);
  CHECK_FALSE(pair.a.write(0, 1, pair.b.remote(), 7));
  CHECK(next_good(pair.a.send_cq).wr_id == 7);
}

TEST_CASE("Unsignaled requests free their places when a signaled one after them is told") {
  constexpr uint64_t kRequests = 2000;
  Pair pair({.capacity = {.max_send_wr = 16}}, {.access = kOpen});
  for (uint64_t i = 0; i < kRequests; ++i) {
    const bool signaled = i % 8 == 7;
    REQUIRE_FALSE(pair.a.post(WrOpcode::rdma_write, 0, 1, pair.b.remote(), i,
                              signaled ? SendFlags::signaled : SendFlags::none));
    if (signaled) REQUIRE(next_good(pair.a.send_cq).wr_id == i);
  }
  CHECK_FALSE(pair.a.send_cq.wait(Duration::zero()));
}

TEST_CASE("A queue pair tells how many requests are posted") {
  Pair pair;
  pair.b.post_receives(5, 100);
  CHECK(pair.b.qp.query().posted_receives == 5);
  REQUIRE_FALSE(pair.a.send(0, 10));
  next_good(pair.a.send_cq);
  next_good(pair.b.recv_cq);
  CHECK(pair.a.qp.query().posted_sends == 0);
  CHECK(pair.b.qp.query().posted_receives == 4);
}

TEST_CASE("Sends that are posted as one go out in order") {
  Pair pair;
  pair.b.post_receives(10, 8);
  pair.a.fill(0, 10, 3);
  const std::vector<SendWorkRequest> requests = sends_of(pair.a, 10);
  size_t posted = 99;
  CHECK_FALSE(pair.a.qp.post_sends(requests, posted));
  CHECK(posted == 10);
  for (uint64_t i = 0; i < 10; ++i) {
    CHECK(next_good(pair.a.send_cq).wr_id == i);
    CHECK(next_good(pair.b.recv_cq).wr_id == i);
    CHECK(pair.b.bytes(i * 8, 1)[0] == pair.a.bytes(i, 1)[0]);
  }
}

TEST_CASE("Of sends posted as one, those before the first that is refused are posted, no others") {
  Pair pair;
  pair.b.post_receives(10, 8);
  std::vector<SendWorkRequest> requests = sends_of(pair.a, 5);
  const size_t too_much = pair.a.qp.query().capacity.max_inline_data + 1;
  requests[3].sges = pair.a.mr->sge(0, too_much);
  requests[3].flags = SendFlags::inline_data;
  size_t posted = 99;
  CHECK(pair.a.qp.post_sends(requests, posted) == Errc::inline_too_large);
  CHECK(posted == 3);
  for (uint64_t i = 0; i < 3; ++i) CHECK(next_good(pair.a.send_cq).wr_id == i);
  CHECK_FALSE(pair.a.send_cq.wait(kMoment));
}

TEST_CASE("Of sends posted as one, as many are posted as there is room for") {
  Pair pair({.entries = 1, .capacity = {.max_send_wr = 16}}, {.access = kOpen});
  std::vector<SendWorkRequest> requests = sends_of(pair.a, 4096);
  for (SendWorkRequest& request : requests) {
    request.sges = pair.a.mr->sge(0, 1);
    request.opcode = WrOpcode::rdma_write;
    request.remote = pair.b.remote();
  }
  size_t posted = 0;
  CHECK(pair.a.qp.post_sends(requests, posted) == Errc::queue_full);
  CHECK(posted >= 16);
  REQUIRE(posted < 4096);
  for (uint64_t i = 0; i < posted; ++i) REQUIRE(next_good(pair.a.send_cq).wr_id == i);
  CHECK_FALSE(pair.a.send_cq.wait(kMoment));
}

TEST_CASE("Of receives posted together, those before the first that is refused are posted") {
  const Device device = open_device();
  Party party(device);
  std::vector<ReceiveWorkRequest> requests(4);
  const size_t too_many = party.qp.query().capacity.max_recv_sge + 1;
  const std::vector<Sge> sges(too_many, party.mr->sge(0, 1));
  requests[2].sges = sges;
  size_t posted = 99;
  CHECK(party.qp.post_recvs(requests, posted) == Errc::too_many_sges);
  CHECK(posted == 2);
  CHECK(party.qp.query().posted_receives == 2);
}

TEST_CASE("Threads may post to one queue pair at the same time") {
  constexpr size_t kThreads = 4;
  constexpr size_t kEach = 30;
  Pair pair;
  pair.b.post_receives(kThreads * kEach, 16);
  std::vector<std::future<bool>> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [&pair, thread] {
      for (size_t i = 0; i < kEach; ++i)
        if (pair.a.send(0, 16, thread * kEach + i)) return false;
      return true;
    }));
  }
  for (auto& thread : threads) REQUIRE(thread.get());
  std::vector<int> seen(kThreads * kEach);
  for (const WorkCompletion& sent : take(pair.a.send_cq, kThreads * kEach)) {
    REQUIRE(sent.status == WcStatus::success);
    REQUIRE(sent.wr_id < seen.size());
    ++seen[sent.wr_id];
  }
  for (const int count : seen) REQUIRE(count == 1);
  for (size_t i = 0; i < kThreads * kEach; ++i) next_good(pair.b.recv_cq);
}

}  // namespace diwarp::contract
