// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/random.h"
#include "diwarp/error.h"
#include "rnic/device.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/work_queue.h"
#include "support/catch.h"

using namespace diwarp;
using rnic::SendEntry;

namespace {

constexpr uint32_t kDepth = 4;

Address peer(uint32_t number) {
  return Address::parse("192.0.2." + std::to_string(number + 1) + ":7471");
}

/// A send queue without a queue pair, and the completion queue that it reports to.
struct Queue {
  explicit Queue(CompletionOrder order, uint32_t completions = 64)
      : sends({.max_send_wr = kDepth}, false, order), cq(device, completions, nullptr, 0) {}

  std::error_code post(uint64_t wr_id, uint32_t to, SendFlags flags = SendFlags::signaled) {
    return sends.post({.wr_id = wr_id, .flags = flags, .destination = peer(to)});
  }
  SendEntry* hand_over(uint64_t wr_id, uint32_t to, SendFlags flags = SendFlags::signaled) {
    REQUIRE_FALSE(post(wr_id, to, flags));
    return &sends.hand_over();
  }
  /// The requests that are reported now: the wr_ids.
  std::vector<uint64_t> reported() {
    all_reported = sends.report(cq, 7);
    std::vector<uint64_t> wr_ids;
    WorkCompletion completion;
    while (cq.poll({&completion, 1}) != 0) {
      wr_ids.push_back(completion.wr_id);
      statuses.push_back(completion.status);
    }
    return wr_ids;
  }

  std::shared_ptr<rnic::Device> device = std::make_shared<rnic::Device>(
      Address::parse("127.0.0.1"), DeviceOptions{.progress = Progress::manual});
  rnic::SendQueue sends;
  rnic::CompletionQueue cq;
  std::vector<WcStatus> statuses;
  bool all_reported = true;
};

using Ids = std::vector<uint64_t>;

}  // namespace

TEST_CASE("send queue: in order of posting a request under way holds up all later ones") {
  Queue queue(CompletionOrder::posting);
  SendEntry* const slow = queue.hand_over(0, 0);
  for (uint64_t id = 1; id < kDepth; ++id)
    queue.sends.answered(*queue.hand_over(id, 1), WcStatus::success);
  CHECK(queue.reported().empty());
  CHECK(queue.post(9, 1) == Errc::queue_full);
  queue.sends.answered(*slow, WcStatus::success);
  CHECK(queue.reported() == Ids{0, 1, 2, 3});
}

TEST_CASE("send queue: in order per peer a request under way holds up its peer's alone") {
  Queue queue(CompletionOrder::peer);
  SendEntry* const slow = queue.hand_over(0, 0);
  SendEntry* const behind = queue.hand_over(1, 0);
  SendEntry* const other = queue.hand_over(2, 1);
  queue.sends.answered(*behind, WcStatus::success);
  queue.sends.answered(*other, WcStatus::success);
  CHECK(queue.reported() == Ids{2});
  CHECK_FALSE(queue.sends.all_done());
  queue.sends.answered(*slow, WcStatus::retry_exceeded);
  CHECK(queue.reported() == Ids{0, 1});
  CHECK(queue.statuses ==
        std::vector{WcStatus::success, WcStatus::retry_exceeded, WcStatus::success});
  CHECK(queue.sends.all_done());
}

TEST_CASE("send queue: in order per peer a place is free as soon as its request is reported") {
  Queue queue(CompletionOrder::peer);
  SendEntry* const slow = queue.hand_over(0, 0);
  for (uint64_t id = 1; id < 1000; ++id) {
    SendEntry* const entry = queue.hand_over(id, 1);
    REQUIRE(entry != slow);
    queue.sends.answered(*entry, WcStatus::success);
    REQUIRE(queue.reported() == Ids{id});
    REQUIRE(queue.sends.outstanding() == 1);
  }
  CHECK(slow->wr_id == 0);
  for (uint64_t id = 1; id < kDepth; ++id) CHECK_FALSE(queue.post(id, 1));
  CHECK(queue.post(9, 1) == Errc::queue_full);
}

TEST_CASE("send queue: in order per peer what is not signaled frees its place in its peer's turn") {
  Queue queue(CompletionOrder::peer);
  SendEntry* const first = queue.hand_over(0, 0, SendFlags::none);
  SendEntry* const second = queue.hand_over(1, 0);
  queue.sends.answered(*second, WcStatus::success);
  CHECK(queue.reported().empty());
  CHECK(queue.sends.outstanding() == 2);
  queue.sends.answered(*first, WcStatus::success);
  CHECK(queue.reported() == Ids{1});
  CHECK(queue.sends.outstanding() == 0);
}

TEST_CASE("send queue: in order per peer a full completion queue loses nothing") {
  Queue queue(CompletionOrder::peer, 1);
  for (uint64_t id = 0; id < kDepth; ++id)
    queue.sends.answered(*queue.hand_over(id, static_cast<uint32_t>(id)), WcStatus::success);
  CHECK(queue.post(9, 1) == Errc::queue_full);
  for (uint64_t id = 0; id < kDepth; ++id) {
    CHECK(queue.reported() == Ids{id});
    CHECK(queue.all_reported == (id == kDepth - 1));
    CHECK(queue.sends.outstanding() == kDepth - 1 - id);
  }
}

TEST_CASE("send queue: in order per peer a local operation is reported at once") {
  Queue queue(CompletionOrder::peer);
  queue.hand_over(0, 0);
  REQUIRE_FALSE(queue.sends.post({.wr_id = 1, .opcode = WrOpcode::bind_window}));
  queue.sends.complete(WcStatus::success);
  CHECK(queue.reported() == Ids{1});
  CHECK_FALSE(queue.sends.all_done());  // which a local invalidate waits for
}

TEST_CASE("send queue: a flush ends what is under way and what is pending, in either order") {
  for (const CompletionOrder order : {CompletionOrder::posting, CompletionOrder::peer}) {
    Queue queue(order);
    queue.hand_over(0, 0);
    queue.sends.answered(*queue.hand_over(1, 0), WcStatus::success);
    queue.hand_over(2, 1);
    REQUIRE_FALSE(queue.post(3, 0));
    queue.sends.flush();
    std::vector<uint64_t> to_peer_0 = queue.reported();
    CHECK(to_peer_0.size() == 4);
    std::erase(to_peer_0, uint64_t{2});
    CHECK(to_peer_0 == Ids{0, 1, 3});
    CHECK(std::count(queue.statuses.begin(), queue.statuses.end(), WcStatus::success) == 1);
    CHECK(queue.sends.outstanding() == 0);
  }
}

TEST_CASE("send queue: after a reset all places are free, in either order") {
  for (const CompletionOrder order : {CompletionOrder::posting, CompletionOrder::peer}) {
    Queue queue(order);
    queue.sends.clear();  // nothing was ever posted
    queue.hand_over(0, 0);
    queue.sends.answered(*queue.hand_over(1, 1), WcStatus::success);
    REQUIRE_FALSE(queue.post(2, 0));
    queue.sends.clear();
    CHECK(queue.reported().empty());
    CHECK(queue.sends.outstanding() == 0);
    for (uint64_t id = 3; id < 3 + kDepth; ++id)
      queue.sends.answered(*queue.hand_over(id, 0), WcStatus::success);
    CHECK(queue.reported() == Ids{3, 4, 5, 6});
  }
}

TEST_CASE("send queue: no two requests share an entry, whatever is done first") {
  Random random(7);
  Queue queue(CompletionOrder::peer);
  std::vector<std::pair<uint64_t, SendEntry*>> under_way;
  uint64_t posted = 0, came = 0;
  for (int step = 0; step < 5000; ++step) {
    if (random.below(2) == 0 && !queue.post(posted, static_cast<uint32_t>(random.below(3)))) {
      under_way.emplace_back(posted++, &queue.sends.hand_over());
    } else if (!under_way.empty()) {
      const auto one = under_way.begin() + static_cast<ptrdiff_t>(random.below(under_way.size()));
      REQUIRE(one->second->wr_id == one->first);
      queue.sends.answered(*one->second, WcStatus::success);
      under_way.erase(one);
    }
    came += queue.reported().size();
    REQUIRE(posted - came == queue.sends.outstanding());
  }
}
