// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/receive_buffers.h"

#include <array>
#include <set>
#include <vector>
#include "support/catch.h"

#include "diwarp/error.h"
#include "parts.h"
#include "rnic/engine/attach.h"
#include "rnic/memory/protection_domain.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

ReceiveOutcome with_status(WcStatus status) { return {.source = {}, .status = status}; }

std::vector<uint64_t> ids(const std::vector<WorkCompletion>& completions) {
  std::vector<uint64_t> all;
  for (const WorkCompletion& completion : completions) all.push_back(completion.wr_id);
  return all;
}

using Ids = std::vector<uint64_t>;

/// Two queue pairs with one receive queue.
struct Shared : Completions {
  Shared() {
    device->engine().exclusively([this] {
      attach_endpoint(device->engine(), first_owner, -1);
      attach_endpoint(device->engine(), second_owner, -1);
    });
    steps();
    first_owner.transmitted = second_owner.transmitted = 0;
  }
  ~Shared() {
    device->engine().exclusively([this] {
      detach_endpoint(device->engine(), first_owner);
      detach_endpoint(device->engine(), second_owner);
    });
  }
  std::error_code try_post(uint64_t wr_id) {
    const ReceiveWorkRequest request{.wr_id = wr_id};
    size_t posted = 0;
    return queue->post_recvs({&request, 1}, posted);
  }
  void post(uint64_t wr_id) { REQUIRE_FALSE(try_post(wr_id)); }
  void steps() {
    for (int i = 0; i < 3; ++i) device->engine().poll_step();
  }
  std::vector<WorkCompletion> reported(ReceiveBuffers& of) {
    of.report(cq, of.completed(), kQueuePair);
    return poll();
  }

  CountingEndpoint first_owner;
  CountingEndpoint second_owner;
  std::shared_ptr<rnic::SharedReceiveQueue> queue = std::make_shared<rnic::SharedReceiveQueue>(
      std::make_shared<ProtectionDomain>(device), SharedReceiveQueueOptions{.max_wr = 4});
  ReceiveBuffers first{first_owner, {}, queue};
  ReceiveBuffers second{second_owner, {}, queue};
};

}  // namespace

TEST_CASE(
    "receive buffers: receives are taken in the order of posting and given back to the head") {
  Receives receives;
  for (uint64_t id = 1; id <= 3; ++id) REQUIRE_FALSE(receives.post(id));
  ReceiveEntry* const first = receives.buffers.take_receive();
  ReceiveEntry* const second = receives.buffers.take_receive();
  REQUIRE(second != nullptr);
  CHECK(first->wr_id == 1);
  CHECK(second->wr_id == 2);
  CHECK(receives.buffers.available() == 1);
  receives.buffers.give_back(*first);
  CHECK(receives.next() == 1);
  receives.buffers.give_back(*second);
  CHECK(receives.next() == 2);  // the last one that came back is the next one
  CHECK(receives.buffers.available() == 3);
}

TEST_CASE("receive buffers: an empty queue gives none") {
  Receives receives;
  CHECK(receives.buffers.take_receive() == nullptr);
  CHECK(receives.buffers.peek() == nullptr);
  REQUIRE_FALSE(receives.post(1));
  REQUIRE(receives.buffers.take_receive() != nullptr);
  CHECK(receives.buffers.take_receive() == nullptr);
}

TEST_CASE("receive buffers: completions are reported in the order in which they were made") {
  Receives receives;
  for (uint64_t id = 1; id <= 3; ++id) REQUIRE_FALSE(receives.post(id));
  ReceiveEntry& first = *receives.buffers.take_receive();
  ReceiveEntry& second = *receives.buffers.take_receive();
  receives.buffers.complete(second, with_status(WcStatus::success));
  receives.buffers.complete(first, with_status(WcStatus::success));
  CHECK(receives.buffers.completed() == 2);
  CHECK(receives.buffers.reported() == 0);
  CHECK(receives.buffers.report(receives.cq, 1, kQueuePair));
  CHECK(receives.buffers.reported() == 1);
  CHECK(ids(receives.poll()) == Ids{2});
  CHECK(ids(receives.reported()) == Ids{1});
}

TEST_CASE(
    "receive buffers: a receive's place is free when its completion was reported, not sooner") {
  Receives receives(2);
  for (uint64_t id = 1; id <= 2; ++id) REQUIRE_FALSE(receives.post(id));
  CHECK(receives.post(3) == Errc::queue_full);
  ReceiveEntry& taken = *receives.buffers.take_receive();
  CHECK(receives.post(3) == Errc::queue_full);
  receives.buffers.complete(taken, with_status(WcStatus::success));
  CHECK(receives.post(3) == Errc::queue_full);
  CHECK(receives.reported().size() == 1);
  CHECK_FALSE(receives.post(3));
  CHECK(receives.post(4) == Errc::queue_full);
}

TEST_CASE("receive buffers: a full completion queue holds completions up, and loses none") {
  Receives receives(8, 2);
  for (uint64_t id = 1; id <= 5; ++id) {
    REQUIRE_FALSE(receives.post(id));
    receives.buffers.complete(*receives.buffers.take_receive(), with_status(WcStatus::success));
  }
  CHECK_FALSE(receives.buffers.report(receives.cq, 5, kQueuePair));
  CHECK(receives.buffers.reported() == 2);
  CHECK(ids(receives.poll()) == Ids{1, 2});
  CHECK(ids(receives.reported()) == Ids{3, 4});
  CHECK(ids(receives.reported()) == Ids{5});
}

TEST_CASE(
    "receive buffers: a completion says all that is known, though its list lay there before") {
  Receives receives;
  Canvas canvas;
  std::array<Sge, 4> sges;
  for (size_t i = 0; i < sges.size(); ++i) sges[i] = {canvas.at(i), 1, 0xFFFFFFFF};
  REQUIRE_FALSE(receives.post(9, sges));
  ReceiveEntry& entry = *receives.buffers.take_receive();
  CHECK(entry.capacity == 4);
  ReceiveOutcome said = with_status(WcStatus::success);
  said.opcode = WcOpcode::recv_immediate;
  said.solicited = said.invalidated = said.has_immediate = true;
  said.invalidated_stag = 0x12345678;
  said.byte_count = 77;
  said.immediate = UINT64_MAX - 1;
  said.source = Address::parse("[2001:db8::1]:7");
  receives.buffers.complete(entry, said);
  const auto all = receives.reported();
  REQUIRE(all.size() == 1);
  CHECK(all[0].wr_id == 9);
  CHECK(all[0].qp_number == kQueuePair);
  CHECK(all[0].opcode == WcOpcode::recv_immediate);
  CHECK(all[0].solicited);
  CHECK(all[0].invalidated);
  CHECK(all[0].invalidated_stag == 0x12345678);
  CHECK(all[0].byte_count == 77);
  CHECK(all[0].has_immediate);
  CHECK(all[0].immediate == UINT64_MAX - 1);
  CHECK(all[0].source == said.source);
}

TEST_CASE("receive buffers: a flush ends what is posted, and leaves alone what is taken") {
  Receives receives;
  for (uint64_t id = 1; id <= 3; ++id) REQUIRE_FALSE(receives.post(id));
  ReceiveEntry& taken = *receives.buffers.take_receive();
  receives.buffers.flush();
  const auto flushed = receives.reported();
  CHECK(ids(flushed) == Ids{2, 3});
  for (const WorkCompletion& completion : flushed) {
    CHECK(completion.status == WcStatus::wr_flush_error);
    CHECK(completion.opcode == WcOpcode::recv);
  }
  receives.buffers.give_back(taken);
  receives.buffers.flush();
  CHECK(ids(receives.reported()) == Ids{1});
}

TEST_CASE("receive buffers: after clear all places are free and nothing is reported") {
  Receives receives(4);
  for (uint64_t id = 1; id <= 4; ++id) REQUIRE_FALSE(receives.post(id));
  receives.buffers.complete(*receives.buffers.take_receive(), with_status(WcStatus::success));
  receives.buffers.clear();
  CHECK(receives.reported().empty());
  CHECK(receives.next() == 0);
  for (uint64_t id = 5; id <= 8; ++id) CHECK_FALSE(receives.post(id));
  CHECK(receives.post(9) == Errc::queue_full);
  CHECK(receives.next() == 5);
}

TEST_CASE("receive buffers: no two receives share a place, whatever order they end in") {
  Receives receives(4);
  uint64_t id = 0;
  std::set<ReceiveEntry*> taken;
  Random random(3);
  for (int step = 0; step < 2000; ++step) {
    const uint64_t what = random.below(4);
    if (what == 0 && !receives.post(id + 1)) ++id;
    if (what == 1)
      if (ReceiveEntry* const entry = receives.buffers.take_receive())
        REQUIRE(taken.insert(entry).second);
    if (what >= 2 && !taken.empty()) {
      ReceiveEntry* const entry =
          *std::next(taken.begin(), static_cast<ptrdiff_t>(random.below(taken.size())));
      taken.erase(entry);
      if (what == 2)
        receives.buffers.give_back(*entry);
      else
        receives.buffers.complete(*entry, with_status(WcStatus::success));
      receives.reported();
    }
    REQUIRE(receives.buffers.queue().outstanding() == taken.size() + receives.buffers.available());
  }
  CHECK(id > 100);
}

TEST_CASE("receive buffers: a waiting peer is told of once, and finds what was posted meanwhile") {
  Receives receives;
  CHECK_FALSE(receives.buffers.take_wish());
  CHECK_FALSE(receives.buffers.await());
  CHECK(receives.buffers.take_wish());
  CHECK_FALSE(receives.buffers.take_wish());
  REQUIRE_FALSE(receives.post(1));
  CHECK(receives.buffers.await());
}

TEST_CASE("receive buffers: a list of more bytes than a completion can count is refused") {
  Receives receives;
  const Sge half{nullptr, 0x80000000, 1};
  CHECK(receives.post(1, {half, half}) == Errc::message_too_large);
  const Sge less{nullptr, 0x7FFFFFFF, 1};
  CHECK_FALSE(receives.post(1, {half, less}));
  CHECK(receives.buffers.peek()->capacity == UINT32_MAX);
}

TEST_CASE("receive buffers: of a shared queue each queue pair reports what it completed") {
  Shared shared;
  for (uint64_t id = 1; id <= 4; ++id) shared.post(id);
  ReceiveEntry& one = *shared.first.take_receive();
  ReceiveEntry& two = *shared.second.take_receive();
  CHECK(one.wr_id == 1);
  CHECK(two.wr_id == 2);
  CHECK(shared.first.available() == 2);
  shared.second.complete(two, with_status(WcStatus::success));
  CHECK(shared.reported(shared.first).empty());
  CHECK(ids(shared.reported(shared.second)) == Ids{2});
  shared.post(5);
  CHECK(shared.try_post(6) == Errc::queue_full);
  shared.first.give_back(one);
  CHECK(shared.second.peek()->wr_id == 1);
}

TEST_CASE("receive buffers: a flush leaves the receives of a shared queue to the others") {
  Shared shared;
  shared.post(1);
  shared.first.flush();
  shared.first.clear();
  CHECK(shared.reported(shared.first).empty());
  CHECK(shared.second.peek()->wr_id == 1);
}

TEST_CASE("receive buffers: those that wait at a shared queue are activated by a post, once") {
  Shared shared;
  CHECK_FALSE(shared.first.await());
  CHECK_FALSE(shared.first.await());
  CHECK_FALSE(shared.second.await());
  shared.steps();
  CHECK(shared.first_owner.transmitted == 0);
  shared.post(1);
  shared.steps();
  CHECK(shared.first_owner.transmitted == 1);
  CHECK(shared.second_owner.transmitted == 1);
  shared.post(2);
  shared.steps();
  CHECK(shared.first_owner.transmitted == 1);
}

TEST_CASE(
    "receive buffers: a receive, or a share, that is given back wakes those that wait for it") {
  Shared shared;
  shared.post(1);
  ReceiveEntry& taken = *shared.first.take_receive();
  const auto await_and = [&](auto&& then) {
    shared.second.await();
    const uint64_t before = shared.second_owner.transmitted;
    shared.device->engine().exclusively(then);
    shared.steps();
    return shared.second_owner.transmitted - before;
  };
  CHECK(await_and([] {}) == 0);
  CHECK(await_and([&] { shared.first.give_back(taken); }) == 1);
  CHECK(await_and([&] { shared.first.share_given_back(); }) == 1);
}

TEST_CASE("receive buffers: a queue pair that goes leaves no completion, and waits no longer") {
  Shared shared;
  for (uint64_t id = 1; id <= 4; ++id) shared.post(id);
  shared.first.complete(*shared.first.take_receive(), with_status(WcStatus::success));
  CHECK(shared.try_post(5) == Errc::queue_full);
  CHECK(shared.first.await());
  shared.first.retire();
  CHECK_FALSE(shared.first.linked());
  CHECK(shared.reported(shared.first).empty());
  shared.post(5);  // its place is free
  shared.steps();
  CHECK(shared.first_owner.transmitted == 0);
}

TEST_CASE("receive buffers: a limit of a shared queue holds for the receives that all take") {
  Shared shared;
  for (uint64_t id = 1; id <= 4; ++id) shared.post(id);
  shared.queue->set_limit(3);
  shared.first.take_receive();
  CHECK(shared.queue->query().limit == 3);
  shared.second.take_receive();
  CHECK(shared.queue->query().limit == 0);  // it was reached
  CHECK(shared.queue->query().posted == 2);
}
