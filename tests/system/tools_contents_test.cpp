// SPDX-License-Identifier: Apache-2.0
// That --verify notices wrong contents, whichever operation brings them. Both ends of a run live in
// this process; their RNIC threads do the work of the end that is not called.
#include <chrono>
#include <cstring>
#include <future>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/flow_loop.h"
#include "common/flow_receiver.h"
#include "common/flow_sender.h"
#include "common/flow_set.h"
#include "common/mark.h"
#include "common/pairing.h"
#include "common/pattern.h"
#include "common/requests.h"
#include "common/writes.h"
#include "support/catch.h"

namespace diwarp::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr Duration kTimeout = std::chrono::seconds(20);
constexpr uint64_t kToken = 7;

/// The two ends, not paired yet.
struct Ends {
  Ends(const EndpointShape& near_shape, const EndpointShape& far_shape)
      : near(near_device, near_shape), far(far_device, far_shape) {}

  void pair() {
    near.post_receives();
    far.post_receives();
    auto server = std::async(std::launch::async, [this] {
      pair_as_server(far, far_device, far_control, far_control.expect("row"), kToken);
    });
    pair_as_client(near, near_control, {{"type", "row"}}, kToken);
    server.get();
  }

  ControlListener listener{Address::loopback(AddressFamily::ipv4)};
  Control near_control = Control::connect(listener.address(), kTimeout);
  Control far_control{listener.accept(kTimeout), kTimeout};
  Device near_device = Device::open(near_control.local_address().with_port(0));
  Device far_device = Device::open(far_control.local_address().with_port(0));
  Endpoint near;
  Endpoint far;
};

TEST_CASE("a mark differs from empty memory and from the marks of the laps around it") {
  std::vector<std::byte> message(3);
  for (uint64_t lap = 0; lap < 600; ++lap) {
    std::fill(message.begin(), message.end(), std::byte{0});
    CHECK(!is_marked(message, lap));
    set_mark(message, lap);
    CHECK(is_marked(message, lap));
    CHECK(!is_marked(message, lap + 1));
    CHECK((lap == 0 || !is_marked(message, lap - 1)));
  }
  CHECK(contents_of(message).size() == 2);
}

TEST_CASE("a Read that brings another byte is noticed, and only then") {
  Ends ends(requester_shape(Operation::read, 100, 1), responder_shape(Operation::read, 100, 1));
  Responder responder(ends.far, ends.far_control);
  RequestPinger pinger(ends.near, ends.near_control, true);
  ends.pair();
  CHECK_NOTHROW(pinger.ping());
  ends.far.send_slot(0)[42] ^= std::byte{1};
  CHECK_THROWS_WITH(pinger.ping(), ContainsSubstring("wrong contents from byte 42 on"));
}

TEST_CASE("an atomic that finds another value than was added up is noticed") {
  Ends ends(requester_shape(Operation::atomic, 8, 2), responder_shape(Operation::atomic, 8, 2));
  RequestPinger pinger(ends.near, ends.near_control, true);
  ends.pair();
  for (int i = 0; i < 4; ++i) CHECK_NOTHROW(pinger.ping());
  const uint64_t meddled = 1;
  std::memcpy(ends.far.send_slot(0).data(), &meddled, sizeof meddled);
  CHECK_THROWS_WITH(pinger.ping(), ContainsSubstring("wrong contents"));
}

TEST_CASE("a written answer with other contents is noticed") {
  Ends ends(writes_shape(100), writes_shape(100));
  WritePinger pinger(ends.near, ends.near_control, true, Waiting::progressing);
  // Writes a number and a mark alone: its contents are not those that the near end expects.
  WrittenMessages answers(ends.far, ends.far_control, false, Way::back, Waiting::idle);
  ends.pair();
  answers.prepare(0);
  answers.post(0);
  CHECK_THROWS_WITH(pinger.ping(), ContainsSubstring("wrong contents from byte 4 on"));
}

TEST_CASE("a written flow with other contents is noticed") {
  FlowPlan plan{.transport = QpType::rc, .operation = Operation::write, .size = 100, .window = 4};
  Ends ends(sender_shape(plan), receiver_shape(plan));
  FlowSender sender(ends.near, ends.near_control, plan);
  plan.verify = true;
  FlowReceiver receiver(ends.far, ends.far_control, plan);
  ends.pair();
  auto counted = std::async(std::launch::async, [&] {
    const FlowCount count = run_sink(receiver, ends.far, ends.far_control, 10);
    ends.far_control.send({{"type", "result"}, {"flow", 0}, {"next", count.next}});
    return count;
  });
  run_source(sender, ends.near, ends.near_control, 10);
  const FlowCount count = counted.get();
  CHECK(count.received == 10);
  CHECK(count.wrong == 10);
  CHECK(count.valid_bytes == 0);
  CHECK_THAT(count.first_wrong,
             ContainsSubstring("Message 0 of 100 bytes arrived with wrong contents"));
}

/// Write-Records over UD, whose slots at the receiver are written again.
FlowPlan records_plan() {
  return {.transport = QpType::ud,
          .operation = Operation::write_record,
          .size = 100,
          .window = 2,
          .verify = true};
}

/// Posts the record of this number, and waits until it has left.
void send_record(Endpoint& endpoint, const FlowPlan& plan, uint64_t number) {
  const auto slot = static_cast<uint32_t>(number % plan.window);
  write_message(endpoint.send_slot(slot), number, Way::there, true);
  endpoint.post_send(slot, true, number);
  const std::optional<WorkCompletion> sent = endpoint.completion_queue().wait(kTimeout);
  REQUIRE((sent && sent->status == WcStatus::success));
}

TEST_CASE("a receiver verifies the records before a write-off, and then confirms it") {
  const FlowPlan plan = records_plan();
  Ends ends(sender_shape(plan), receiver_shape(plan));
  FlowReceiver receiver(ends.far, ends.far_control, plan);
  ends.pair();
  for (const uint64_t number : {0U, 1U}) send_record(ends.near, plan, number);
  ends.near_control.send({{"type", "skip"}, {"flow", 0}, {"to", 2}});
  auto counted = std::async(std::launch::async,
                            [&] { return run_sink(receiver, ends.far, ends.far_control, 4); });
  ends.near_control.expect("skipped");
  for (const uint64_t number : {2U, 3U}) send_record(ends.near, plan, number);
  ends.near_control.send({{"type", "sent"}, {"flow", 0}, {"count", 4}});
  const FlowCount count = counted.get();
  INFO(count.first_wrong);
  CHECK(count.wrong == 0);
  CHECK(count.received == 4);
}

TEST_CASE("a receiver takes no record before a write-off for wrong that comes after it") {
  const FlowPlan plan = records_plan();
  Ends ends(sender_shape(plan), receiver_shape(plan));
  FlowReceiver receiver(ends.far, ends.far_control, plan);
  ends.pair();
  ends.near_control.send({{"type", "skip"}, {"flow", 0}, {"to", 3}});
  auto counted = std::async(std::launch::async,
                            [&] { return run_sink(receiver, ends.far, ends.far_control, 4); });
  ends.near_control.expect("skipped");
  write_message(ends.near.send_slot(0), 2, Way::there, true);
  ends.near.send_slot(0)[50] ^= std::byte{1};
  ends.near.post_send(0, true, 2);
  send_record(ends.near, plan, 3);
  ends.near_control.send({{"type", "sent"}, {"flow", 0}, {"count", 4}});
  const FlowCount count = counted.get();
  INFO(count.first_wrong);
  CHECK(count.wrong == 0);
  CHECK(count.received == 2);
}

TEST_CASE("a sender writes no slot again before the receiver has confirmed the write-off") {
  const FlowPlan plan = records_plan();
  Ends ends(sender_shape(plan), receiver_shape(plan));
  FlowSender sender(ends.near, ends.near_control, plan);
  ends.pair();
  auto sent =
      std::async(std::launch::async, [&] { run_source(sender, ends.near, ends.near_control, 4); });
  CHECK(ends.far_control.expect("skip")["to"] == 2);
  std::vector<uint64_t> numbers;
  const auto take = [&](size_t count, Duration patience) {
    while (numbers.size() < count) {
      const auto record = ends.far.completion_queue().wait(patience);
      if (!record) return;
      numbers.push_back(record->immediate);
    }
  };
  take(2, kTimeout);
  take(4, std::chrono::milliseconds(100));  // where there are more, they come at once
  CHECK(numbers == std::vector<uint64_t>{0, 1});
  ends.far_control.send({{"type", "skipped"}, {"flow", 0}});
  Json word = ends.far_control.next();
  while (word["type"] == "skip") {  // on a slow machine
    ends.far_control.send({{"type", "skipped"}, {"flow", 0}});
    word = ends.far_control.next();
  }
  CHECK(word["type"] == "sent");
  take(4, kTimeout);
  CHECK(numbers == std::vector<uint64_t>{0, 1, 2, 3});
  ends.far_control.send({{"type", "result"}, {"flow", 0}, {"next", 4}});
  sent.get();
  CHECK(sender.write_offs() >= 1);
}

/// Records of three datagrams, whose segments are reported by themselves.
FlowPlan segments_plan() {
  FlowPlan plan = records_plan();
  plan.size = 3000;
  plan.segment = {.jumbo = true, .size = 1100};
  plan.completion = RecordCompletion::per_segment;
  return plan;
}

TEST_CASE("records that complete in segments are counted once whole, and verified") {
  FlowPlan plan = segments_plan();
  const bool meddled = GENERATE(false, true);
  Ends ends(sender_shape(plan), receiver_shape(plan));
  FlowReceiver receiver(ends.far, ends.far_control, plan);
  ends.pair();
  auto counted = std::async(std::launch::async, [&] {
    const FlowCount count = run_sink(receiver, ends.far, ends.far_control, 4);
    ends.far_control.send({{"type", "result"}, {"flow", 0}, {"next", count.next}});
    return count;
  });
  plan.verify = !meddled;  // then the contents are a number alone
  FlowSender sender(ends.near, ends.near_control, plan);
  run_source(sender, ends.near, ends.near_control, 4);
  const FlowCount count = counted.get();
  INFO(count.first_wrong);
  CHECK(count.received == (meddled ? 0 : 4));
  CHECK(count.partial == 0);
  CHECK(count.valid_bytes == (meddled ? 0 : 12000));
  CHECK((count.wrong > 0) == meddled);
}

TEST_CASE("a loop runs flows both ways at the same time, each over its queue pair") {
  const FlowPlan plan{.transport = QpType::rc, .size = 5000, .window = 4, .verify = true};
  const RowFlows flows{.flow = plan, .streams = 3, .bidirectional = true};
  ControlListener listener{Address::loopback(AddressFamily::ipv4)};
  Control near_control = Control::connect(listener.address(), kTimeout);
  Control far_control{listener.accept(kTimeout), kTimeout};
  const auto play = [&](RowEnd end, Control& control) {
    Device device = Device::open(control.local_address().with_port(0));
    CompletionQueue cq(device, completion_entries(flows, end));
    FlowSet set(device, cq, flows, end, control);
    if (end == RowEnd::client)
      set.pair_as_client({{"type", "row"}}, std::nullopt, kToken);
    else
      set.pair_as_server(device, control.expect("row"), kToken);
    FlowLoop loop(cq);
    set.join(loop);
    for (const uint64_t count : {2U, 50U}) {  // the first leave a stream with nothing to do
      set.begin(count);
      control.send({{"type", "begun"}});
      control.expect("begun");
      loop.run();
    }
    const FlowOutcome outcome = set.outcomes().front();
    control.send({{"type", "done"}});
    control.expect("done");
    set.part();
    return outcome;
  };
  auto far = std::async(std::launch::async, play, RowEnd::server, std::ref(far_control));
  const FlowOutcome there = play(RowEnd::client, near_control);
  const FlowOutcome back = far.get();
  for (const FlowOutcome& outcome : {there, back}) {
    INFO(outcome.first_wrong);
    CHECK(outcome.received == 50);
    CHECK(outcome.valid_bytes == 250'000);
    CHECK(outcome.wrong == 0);
    CHECK(outcome.nanoseconds > 0);
    CHECK(outcome_in(to_json(outcome)).valid_bytes == outcome.valid_bytes);
  }
}

TEST_CASE("atomics whose sum is wrong in the end are noticed") {
  const FlowPlan plan{.transport = QpType::rc,
                      .operation = Operation::atomic,
                      .size = 8,
                      .window = 4,
                      .verify = true};
  Ends ends(sender_shape(plan), receiver_shape(plan));
  RequestFlow flow(ends.near, ends.near_control, plan);
  Responder responder(ends.far, ends.far_control);
  ends.pair();
  auto told = std::async(std::launch::async, [&] {
    const FlowCount count = run_sink(responder, ends.far, ends.far_control, 10);
    ends.far_control.send({{"type", "result"}, {"flow", 0}, {"next", count.next + 1}});
    return count.next;
  });
  const Json result = run_source(flow, ends.near, ends.near_control, 10).front();
  CHECK(told.get() == 10);
  CHECK(result["received"] == 10);
  CHECK(result["wrong"] == 1);
  CHECK_THAT(result["first_wrong"].get<std::string>(),
             ContainsSubstring("at 11 after 10 additions"));
}

}  // namespace
}  // namespace diwarp::tools
