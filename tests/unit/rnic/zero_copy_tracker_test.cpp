// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/zero_copy_tracker.h"

#include <cstdint>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "recorded_stream.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

/// Has as many calls in flight as the test says.
struct ZeroCopyStream final : RecordedStream {
  using RecordedStream::RecordedStream;
  uint64_t zero_copy_calls() const override { return calls; }
  uint64_t zero_copy_released() override { return released; }

  uint64_t calls = 0;
  uint64_t released = 0;
};

struct Fixture {
  void post(uint64_t wr_id, WrOpcode opcode = WrOpcode::send) {
    REQUIRE_FALSE(
        sends.queue.post({.wr_id = wr_id, .flags = SendFlags::signaled, .opcode = opcode}));
  }
  /// The oldest pending request is wholly on the stream, after one more call without copying.
  void send_without_copying() {
    ++stream.calls;
    tracker.count_calls(stream);
    tracker.sent(sends.queue);
  }
  bool release_up_to(uint64_t calls) {
    stream.released = calls;
    return tracker.complete_released(stream, sends.queue);
  }
  /// The wr_ids of what is reported now. Each succeeded.
  std::vector<uint64_t> done() {
    std::vector<uint64_t> all;
    for (const WorkCompletion& completion : sends.reported()) {
      CHECK(completion.status == WcStatus::success);
      all.push_back(completion.wr_id);
    }
    return all;
  }

  Sends sends;
  History history;
  ZeroCopyStream stream{history};
  ZeroCopyTracker tracker;
};

using Ids = std::vector<uint64_t>;

}  // namespace

TEST_CASE("zero copy tracker: while no call is in flight a request on the stream is done") {
  Fixture f;
  f.post(1);
  f.tracker.count_calls(f.stream);
  CHECK_FALSE(f.tracker.in_flight());
  f.tracker.sent(f.sends.queue);
  CHECK(f.done() == Ids{1});
}

TEST_CASE("zero copy tracker: a request is done when the stream has released its memory") {
  Fixture f;
  f.post(1);
  f.send_without_copying();
  CHECK(f.tracker.in_flight());
  CHECK_FALSE(f.release_up_to(0));
  CHECK(f.done().empty());
  CHECK(f.release_up_to(1));
  CHECK(f.done() == Ids{1});
  CHECK_FALSE(f.tracker.in_flight());
  CHECK_FALSE(f.release_up_to(1));  // no more than before
}

TEST_CASE("zero copy tracker: requests are done as far as the stream has released calls") {
  Fixture f;
  for (uint64_t id = 1; id <= 4; ++id) {
    f.post(id);
    f.send_without_copying();
  }
  CHECK(f.release_up_to(1));
  CHECK(f.done() == Ids{1});
  CHECK(f.release_up_to(3));
  CHECK(f.done() == Ids{2, 3});
  CHECK(f.tracker.in_flight());
  f.post(5);
  f.send_without_copying();
  CHECK(f.release_up_to(5));
  CHECK(f.done() == Ids{4, 5});
}

TEST_CASE("zero copy tracker: a request that was copied waits for the memory of those before it") {
  Fixture f;
  f.post(1);
  f.post(2);
  f.send_without_copying();
  f.tracker.sent(f.sends.queue);
  CHECK(f.done().empty());
  CHECK(f.release_up_to(1));
  CHECK(f.done() == Ids{1, 2});
}

TEST_CASE("zero copy tracker: a request that needs a response is not done by a release") {
  Fixture f;
  f.post(1);
  f.post(2, WrOpcode::rdma_read);
  f.post(3);
  f.send_without_copying();
  f.tracker.sent(f.sends.queue);
  f.send_without_copying();
  CHECK(f.release_up_to(2));
  CHECK(f.done() == Ids{1});
  REQUIRE(f.sends.queue.awaiting() != nullptr);
  CHECK(f.sends.queue.awaiting()->wr_id == 2);
  f.sends.queue.answered(WcStatus::success);
  CHECK(f.done() == Ids{2, 3});
}

TEST_CASE("zero copy tracker: the order of calls holds beyond 32 bits") {
  Fixture f;
  f.stream.calls = UINT32_MAX - 1;
  f.release_up_to(UINT32_MAX - 1);
  for (uint64_t id = 1; id <= 3; ++id) {
    f.post(id);
    f.send_without_copying();
  }
  REQUIRE(f.stream.calls == uint64_t{UINT32_MAX} + 2);
  CHECK(f.release_up_to(UINT32_MAX));
  CHECK(f.done() == Ids{1});
  CHECK(f.release_up_to(f.stream.calls));
  CHECK(f.done() == Ids{2, 3});
}

TEST_CASE("zero copy tracker: requests of a stream that is gone are not done by the next one") {
  Fixture f;
  f.post(1);
  f.send_without_copying();
  f.tracker.forget();
  CHECK_FALSE(f.tracker.in_flight());
  f.stream.calls = 0;
  f.post(2);
  f.send_without_copying();
  CHECK(f.release_up_to(1));
  CHECK(f.done().empty());
  f.sends.queue.flush();
  CHECK(f.sends.statuses() == Statuses{WcStatus::wr_flush_error, WcStatus::success});
}
