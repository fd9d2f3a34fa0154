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

constexpr Duration kBetweenLinkChecks = std::chrono::milliseconds(100);

uint64_t counter_in(std::span<const std::byte> slot) {
  uint64_t value = 0;
  std::memcpy(&value, slot.data(), sizeof value);
  return value;
}

}  // namespace

EndpointShape requester_shape(Operation operation, size_t size, uint32_t slots, QpType transport) {
  return {.transport = transport,
          .operation = operation,
          .send_slots = slots,
          .receive_size = size,
          .receive_slots = slots};
}

EndpointShape responder_shape(Operation operation, size_t size, uint32_t slots, QpType transport) {
  return {.transport = transport,
          .grants = info_of(operation).access,
          .send_size = size,
          .send_slots = slots};
}

Requester::Requester(Endpoint& endpoint, Control& control, bool verify)
    : endpoint_(endpoint),
      poller_(endpoint.completion_queue(), control),
      verify_(verify),
      limit_(control.timeout() +
             patience(endpoint.shape().receive_size, endpoint.shape().receive_slots)),
      under_way_(endpoint.shape().receive_slots),
      number_(endpoint.shape().receive_slots) {}

uint32_t Requester::slot_of(uint64_t number) const {
  return static_cast<uint32_t>(number % endpoint_.shape().receive_slots);
}

void Requester::post_next() {
  const uint32_t slot = slot_of(posted_);
  if (verify_) spoil(slot);
  endpoint_.post_send(slot);
  under_way_[slot] = true;
  number_[slot] = posted_++;
}

bool Requester::take_completions(Time deadline) {
  const auto completions = poller_.next(deadline);
  for (const WorkCompletion& completion : completions) take(completion);
  return !completions.empty();
}

void Requester::take(const WorkCompletion& completion) {
  endpoint_.check(completion);
  const bool whole = completion.status == WcStatus::success;
  const uint64_t wrong_before = counts_.wrong;
  if (verify_) verify(completion);
  if (!whole) {
    ++counts_.partial;
    gaps_.add(completion.validity);
  }
  if (counts_.wrong == wrong_before)
    counts_.valid_bytes += whole ? endpoint_.shape().receive_size : completion.valid_bytes;
  under_way_[completion.wr_id] = false;
  ++done_;
}

/// Every byte becomes another than the awaited one, so that what never came is noticed.
void Requester::spoil(uint32_t slot) {
  const std::span<std::byte> memory = endpoint_.receive_slot(slot);
  fill(memory, slot, Way::there);
  for (std::byte& byte : memory) byte = ~byte;
}

void Requester::verify(const WorkCompletion& completion) {
  const auto at = fault_in(completion);
  if (!at) return;
  note_wrong("Request " + std::to_string(number_[completion.wr_id]) + " of " +
             std::to_string(endpoint_.shape().receive_size) + " bytes from " +
             endpoint_.peer().to_string() + " brought wrong contents from byte " +
             std::to_string(*at) + " on.");
}

std::optional<size_t> Requester::fault_in(const WorkCompletion& completion) {
  if (endpoint_.shape().operation == Operation::read) return fault_in_read(completion);
  const auto slot = static_cast<uint32_t>(completion.wr_id);
  const uint64_t added_before = number_[slot] / endpoint_.shape().receive_slots;
  const bool right = counter_in(endpoint_.receive_slot(slot)) == added_before;
  return right ? std::nullopt : std::optional<size_t>(0);
}

/// Bytes that did not come must be as they were.
std::optional<size_t> Requester::fault_in_read(const WorkCompletion& completion) {
  const auto slot = static_cast<uint32_t>(completion.wr_id);
  const std::span<std::byte> memory = endpoint_.receive_slot(slot);
  if (completion.status != WcStatus::success) {
    for (const auto& [offset, length] : completion.validity.gaps()) {
      for (std::byte& byte : memory.subspan(offset, length)) byte = ~byte;
    }
  }
  return first_difference(memory, slot, Way::there);
}

void Requester::note_wrong(const std::string& message) {
  if (++counts_.wrong == 1) first_wrong_ = message;
}

void Requester::fail_silence() const {
  throw Failure("No answer came from " + endpoint_.peer().to_string() + " within " +
                to_text(limit_) + ".");
}

std::optional<Duration> RequestPinger::ping() {
  const Time posted = steady_clock::now();
  const Time deadline = posted + requester_.limit();
  requester_.post_next();
  ++counts_.sent;
  while (requester_.done() < requester_.posted()) {
    if (!requester_.take_completions(deadline)) requester_.fail_silence();
  }
  const Duration took = steady_clock::now() - posted;
  const Requester::Counts& counts = requester_.counts();
  if (counts.wrong > 0) throw Failure(requester_.first_wrong());
  if (counts.partial == partial_) return took;
  partial_ = counts.partial;
  if (takes_partial_) {
    ++counts_.partial;
    return took;
  }
  ++counts_.lost;
  return std::nullopt;
}

void RequestFlow::begin(uint64_t count, Time now) {
  stage_ = Stage::asking;
  first_ = requester_.posted();
  end_ = first_ + count;
  before_ = requester_.counts();
  requester_.take_gaps();
  started_ = ended_ = since_ = now;
}

void RequestFlow::work(Time now) {
  if (stage_ != Stage::asking) return;
  if (requester_.posted() == first_) started_ = ended_ = since_ = now;
  while (requester_.posted() < end_ && requester_.has_room()) requester_.post_next();
  if (requester_.done() < end_) return;
  ended_ = since_ = now;
  stage_ = Stage::reporting;
  control_.send({{"type", "sent"}, {"flow", flow_}, {"count", end_ - first_}});
}

void RequestFlow::take(const WorkCompletion& completion, Time now) {
  requester_.take(completion);
  since_ = now;
}

void RequestFlow::hear(size_t, const Json& word, Time) {
  const std::string type = text_in(word, "type");
  if (stage_ != Stage::reporting || type != "result") control_.fail_word(type);
  results_ = {result(word)};
  stage_ = Stage::done;
}

Time RequestFlow::deadline() const {
  if (stage_ == Stage::done) return Time::max();
  return since_ + (stage_ == Stage::asking ? requester_.limit() : control_.timeout());
}

void RequestFlow::expire(Time) {
  if (stage_ == Stage::asking) requester_.fail_silence();
  control_.fail_silence();
}

/// The far end's, with what only this end knows.
Json RequestFlow::result(const Json& word) {
  Json told = word;
  check_counters(told);
  const Requester::Counts& now = requester_.counts();
  told["received"] = end_ - first_ - (now.partial - before_.partial);
  told["partial"] = now.partial - before_.partial;
  told["gaps"] = to_json(requester_.take_gaps());
  told["wrong"] = now.wrong - before_.wrong;
  told["valid_bytes"] = now.valid_bytes - before_.valid_bytes;
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
  const auto step = [&] { return endpoint_.progress(), false; };
  const auto rest = [](Duration) { return false; };
  while (!control_.pending()) {
    // Shorter than spin() stays awake: a request shows nowhere, so it would take this end for idle.
    spin(control_, steady_clock::now() + kBetweenLinkChecks, step, rest);
    if (!control_.pending()) endpoint_.check_link();
  }
}

void Responder::begin(uint64_t, Time now) {
  done_ = false;
  since_ = now;
}

void Responder::take(const WorkCompletion& completion, Time) { endpoint_.check(completion); }

void Responder::hear(size_t, const Json& word, Time) {
  const std::string type = text_in(word, "type");
  if (done_ || type != "sent") control_.fail_word(type);
  // Takes the engine's baton once: the writes of its last holder are seen here.
  endpoint_.queue_pair().query();
  done_ = true;
}

Time Responder::deadline() const { return done_ ? Time::max() : since_ + kBetweenLinkChecks; }

void Responder::expire(Time now) {
  since_ = now;
  endpoint_.check_link();
}

FlowCount Responder::count() const {
  FlowCount count;
  const EndpointShape& shape = endpoint_.shape();
  for (uint32_t slot = 0; shape.grants == Access::remote_atomic && slot < shape.send_slots;
       ++slot) {
    count.next += counter_in(endpoint_.send_slot(slot));
  }
  return count;
}

}  // namespace diwarp::tools
