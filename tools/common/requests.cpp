// SPDX-License-Identifier: Apache-2.0
#include "common/requests.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/pairing.h"
#include "common/pattern.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

uint64_t counter_in(std::span<const std::byte> slot) {
  uint64_t value = 0;
  std::memcpy(&value, slot.data(), sizeof value);
  return value;
}

}  // namespace

EndpointShape requester_shape(Operation operation, size_t size, uint32_t slots) {
  return {.transport = QpType::rc,
          .operation = operation,
          .send_slots = slots,
          .receive_size = size,
          .receive_slots = slots};
}

EndpointShape responder_shape(Operation operation, size_t size, uint32_t slots) {
  return {.transport = QpType::rc,
          .grants = facts_of(operation).access,
          .send_size = size,
          .send_slots = slots};
}

Requester::Requester(Endpoint& endpoint, Control& control, bool verify)
    : endpoint_(endpoint),
      poller_(endpoint.completion_queue(), control),
      verify_(verify),
      limit_(control.timeout() +
             patience(endpoint.shape().receive_size, endpoint.shape().receive_slots)) {}

uint32_t Requester::slot_of(uint64_t number) const {
  return static_cast<uint32_t>(number % endpoint_.shape().receive_slots);
}

Time Requester::deadline() const { return steady_clock::now() + limit_; }

void Requester::post_next() {
  if (verify_) spoil(posted_);
  endpoint_.post_send(slot_of(posted_));
  ++posted_;
}

bool Requester::take_completions(Time deadline) {
  const auto completions = poller_.next(deadline);
  for (const WorkCompletion& completion : completions) {
    endpoint_.check(completion);
    // They complete in order.
    if (verify_) verify(done_);
    ++done_;
  }
  return !completions.empty();
}

/// Every byte becomes another than the awaited one, so that what never came is noticed.
void Requester::spoil(uint64_t number) {
  const std::span<std::byte> slot = endpoint_.receive_slot(slot_of(number));
  fill(slot, slot_of(number), Way::there);
  for (std::byte& byte : slot) byte = ~byte;
}

void Requester::verify(uint64_t number) {
  const auto at = fault_in(number);
  if (!at) return;
  note_wrong("Request " + std::to_string(number) + " of " +
             std::to_string(endpoint_.shape().receive_size) + " bytes from " +
             endpoint_.peer().to_string() + " brought wrong contents from byte " +
             std::to_string(*at) + " on.");
}

std::optional<size_t> Requester::fault_in(uint64_t number) {
  const std::span<const std::byte> slot = endpoint_.receive_slot(slot_of(number));
  if (endpoint_.shape().operation == Operation::read) {
    return first_difference(slot, slot_of(number), Way::there);
  }
  const uint64_t added_before = number / endpoint_.shape().receive_slots;
  return counter_in(slot) == added_before ? std::nullopt : std::optional<size_t>(0);
}

void Requester::note_wrong(const std::string& sentence) {
  if (++wrong_ == 1) first_wrong_ = sentence;
}

void Requester::fail_silence() const {
  throw Failure("No answer came from " + endpoint_.peer().to_string() + " within " +
                to_text(limit_) + ".");
}

std::optional<Duration> RequestPinger::ping() {
  const Time deadline = requester_.deadline();
  const Time posted = steady_clock::now();
  requester_.post_next();
  ++counts_.sent;
  while (requester_.done() < requester_.posted()) {
    if (!requester_.take_completions(deadline)) requester_.fail_silence();
  }
  const Duration took = steady_clock::now() - posted;
  if (requester_.wrong() > 0) throw Failure(requester_.first_wrong());
  return took;
}

Json RequestFlow::send(uint64_t count, const Progress& progress) {
  const uint64_t wrong_before = requester_.wrong();
  const uint64_t first = requester_.posted();
  const Time start = steady_clock::now();
  while (requester_.done() < first + count) {
    while (requester_.posted() < first + count && requester_.has_room()) requester_.post_next();
    progress(requester_.posted() - first);
    if (!requester_.take_completions(requester_.deadline())) requester_.fail_silence();
  }
  elapsed_ = steady_clock::now() - start;
  return result(count, wrong_before);
}

/// The far end's, with what only this end knows.
Json RequestFlow::result(uint64_t count, uint64_t wrong_before) {
  control_.send({{"type", "sent"}, {"count", count}});
  Json told = control_.expect("result");
  check_counters(told);
  const uint64_t wrong = requester_.wrong() - wrong_before;
  told["received"] = count;
  told["wrong"] = wrong;
  told["valid_bytes"] = (count - std::min(wrong, count)) * plan_.size;
  told["first_wrong"] = requester_.first_wrong();
  return told;
}

void RequestFlow::check_counters(const Json& told) {
  if (!plan_.verify || plan_.operation != Operation::atomic) return;
  const uint64_t sum = number_in(told, "next", 0, UINT64_MAX);
  if (sum == requester_.posted()) return;
  requester_.note_wrong("The peer's counters are at " + std::to_string(sum) + " after " +
                        std::to_string(requester_.posted()) + " additions of 1.");
}

Responder::Responder(Endpoint& endpoint, Control& control)
    : endpoint_(endpoint), control_(control) {
  const EndpointShape& shape = endpoint.shape();
  for (uint32_t slot = 0; shape.grants == Access::remote_read && slot < shape.send_slots; ++slot) {
    fill(endpoint.send_slot(slot), slot, Way::there);
  }
}

void Responder::run() {
  // Shorter than spin() stays awake: a request shows nowhere, so it would take this end for idle.
  constexpr Duration kSlice = std::chrono::milliseconds(100);
  const auto step = [&] { return endpoint_.progress(), false; };
  const auto rest = [](Duration) { return false; };
  while (!control_.pending()) {
    spin(control_, steady_clock::now() + kSlice, step, rest);
    if (!control_.pending()) endpoint_.check_link();
  }
}

FlowCount Responder::receive(uint64_t) {
  run();
  control_.expect("sent");
  // Takes the engine's baton once: what its last holder wrote is seen here.
  endpoint_.queue_pair().query();
  FlowCount count;
  const EndpointShape& shape = endpoint_.shape();
  for (uint32_t slot = 0; shape.grants == Access::remote_atomic && slot < shape.send_slots;
       ++slot) {
    count.next += counter_in(endpoint_.send_slot(slot));
  }
  return count;
}

}  // namespace diwarp::tools
