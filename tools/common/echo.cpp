// SPDX-License-Identifier: Apache-2.0
#include "common/echo.h"

#include <string>

#include "common/failure.h"
#include "common/pairing.h"
#include "common/pattern.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

constexpr size_t kSmall = size_t{64} << 10;

/// For a message there and its answer. What comes in part is seldom lost as a whole, so that there
/// is time for two records to end.
Duration patience_of(const EndpointShape& shape) {
  const Duration patience = tools::patience(shape.send_size, 2, shape.max_rate);
  return shape.takes_partial ? 2 * (patience + kRecordTimeout) : patience;
}

/// The number of a message; nothing if it is too short to tell. A Write-Record has it beside its
/// bytes, of which some may be missing; or, of one that came again, the next message's may lie
/// there already.
std::optional<uint64_t> number_in_message(const WorkCompletion& receive,
                                          std::span<const std::byte> message, uint64_t expected) {
  if (receive.opcode == WcOpcode::recv_write_record) return receive.immediate;
  return number_of(message, expected);
}

void verify_message(std::span<const std::byte> message, uint64_t number, Way way,
                    const Address& peer) {
  const auto wrong = first_difference(message, number, way);
  if (wrong) fail_contents(number, message.size(), peer, *wrong);
}

[[noreturn]] void fail_order(const Address& peer) {
  throw Failure("An unexpected message came from " + peer.to_string() +
                " over a reliable transport.");
}

}  // namespace

EndpointShape echo_shape(QpType transport, Operation operation, size_t size) {
  // Incomplete datagram messages hold at most half of the receives, so there are two or more.
  const bool small = size <= kSmall;
  return {.transport = transport,
          .operation = operation,
          .grants = info_of(operation).access,
          .send_size = size,
          .send_slots = small ? 16u : 1u,
          .receive_size = size,
          .receive_slots = small ? 16u : 2u};
}

Pinger::Pinger(Endpoint& endpoint, const Peers& peers, bool verify)
    : endpoint_(endpoint),
      peers_(peers),
      poller_(endpoint.completion_queue(), peers),
      verify_(verify),
      lossy_(!is_reliable(endpoint.shape().transport)),
      patience_(patience_of(endpoint.shape())),
      limit_(peers.front().timeout() + patience_),
      answered_(peers.size()) {
  answers_.reserve(peers.size());
  if (!lossy_) patience_ = limit_;
}

std::optional<Duration> Pinger::ping() {
  prepare();
  const Time first = steady_clock::now();
  for (Time posted = first;; posted = steady_clock::now()) {
    if (try_once(posted)) {
      const Duration took = steady_clock::now() - posted;
      ++number_;
      if (posted == first) return took;
      settle();
      return std::nullopt;
    }
    ++counts_.lost;
    if (!lossy_ || steady_clock::now() - first > limit_) {
      throw Failure("No answer came from " + endpoint_.peer().to_string() + " within " +
                    to_text(limit_) + ".");
    }
  }
}

/// Brings the endpoint to where the next message can be posted at once.
void Pinger::prepare() {
  repost_answered();
  answered_.assign(answered_.size(), false);
  awaited_ = answered_.size();
  if (sends_open_ > 0) await_sent();
  write_message(endpoint_.send_slot(0), number_, Way::there, verify_);
}

void Pinger::await_sent() {
  const Time deadline = steady_clock::now() + limit_;
  while (sends_open_ > 0 && steady_clock::now() < deadline) {
    for (const WorkCompletion& completion : poller_.next(deadline)) accept(completion);
  }
}

bool Pinger::try_once(Time posted) {
  // A message that is still on its way out is not posted twice.
  if (sends_open_ == 0) {
    endpoint_.post_send(0, true, number_);
    ++sends_open_;
    ++counts_.sent;
  }
  const Time deadline = posted + patience_;
  do {
    bool answered = false;
    for (const WorkCompletion& completion : poller_.next(deadline)) {
      if (accept(completion)) answered = true;
    }
    if (answered) return true;
    peers_.look_at_others();
  } while (steady_clock::now() < deadline);
  return false;
}

/// True if the last answer that was awaited came.
bool Pinger::accept(const WorkCompletion& completion) {
  endpoint_.check(completion);
  if (!is_receive(completion)) {
    --sends_open_;
    return false;
  }
  const auto message = endpoint_.message(completion);
  const auto member = endpoint_.member_of(completion);
  const bool awaited = awaited_ > 0 && member && !answered_[*member];
  const bool whole = is_whole(completion);
  const bool usable = whole || endpoint_.shape().takes_partial;
  if (!awaited || !usable || !is_answer(completion, message)) {
    if (!lossy_ && member) fail_order(endpoint_.peer());
    endpoint_.post_receive_again(completion.wr_id);
    return false;
  }
  if (verify_) verify_message(message, number_, Way::back, endpoint_.members()[*member]);
  if (!whole) ++counts_.partial;
  answered_[*member] = true;
  answers_.push_back(completion.wr_id);
  return --awaited_ == 0;
}

bool Pinger::is_answer(const WorkCompletion& receive, std::span<const std::byte> message) const {
  return message.size() == endpoint_.shape().send_size &&
         number_in_message(receive, message, number_).value_or(number_) == number_;
}

void Pinger::repost_answered() {
  for (const uint64_t wr_id : answers_) endpoint_.post_receive_again(wr_id);
  answers_.clear();
}

/// Empty messages have no number: a late answer must not be taken for the next one's.
void Pinger::settle() {
  if (endpoint_.shape().send_size > 0) return;
  const Time quiet = steady_clock::now() + patience_;
  while (steady_clock::now() < quiet) {
    for (const WorkCompletion& completion : poller_.next(quiet)) accept(completion);
  }
}

Echoer::Echoer(Endpoint& endpoint, Control& control, bool verify)
    : endpoint_(endpoint),
      control_(control),
      poller_(endpoint.completion_queue(), control),
      verify_(verify),
      limit_(control.timeout() + patience_of(endpoint.shape())) {}

void Echoer::run() {
  while (!control_.pending()) {
    const auto completions = poller_.next(steady_clock::now() + limit_);
    for (const WorkCompletion& completion : completions) take(completion);
    if (completions.empty() && !control_.pending()) {
      throw Failure("Nothing came from " + endpoint_.peer().to_string() + " for " +
                    to_text(limit_) + ".");
    }
  }
}

void Echoer::take(const WorkCompletion& completion) {
  endpoint_.check(completion);
  if (!is_receive(completion)) {
    --sends_open_;
    return;
  }
  const bool usable = is_whole(completion) || endpoint_.shape().takes_partial;
  if (usable && endpoint_.is_from_peer(completion)) take_message(completion);
  endpoint_.post_receive_again(completion.wr_id);
}

void Echoer::take_message(const WorkCompletion& receive) {
  const std::span<const std::byte> message = endpoint_.message(receive);
  const auto number = number_to_answer(receive, message);
  if (!number) {
    if (is_reliable(endpoint_.shape().transport)) fail_order(endpoint_.peer());
    return;
  }
  // What comes again has been verified, and is perhaps being overwritten.
  if (verify_ && *number == expected_)
    verify_message(message, *number, Way::there, endpoint_.peer());
  answer(*number);
  expected_ = *number + 1;
}

/// The next message's number, or the last one's if its answer got lost; nothing for what is late.
std::optional<uint64_t> Echoer::number_to_answer(const WorkCompletion& receive,
                                                 std::span<const std::byte> message) const {
  if (message.size() != endpoint_.shape().receive_size) return std::nullopt;
  const uint64_t number = number_in_message(receive, message, expected_).value_or(expected_);
  const bool again = number + 1 == expected_ && !is_reliable(endpoint_.shape().transport);
  if (number != expected_ && !again) return std::nullopt;
  return number;
}

void Echoer::answer(uint64_t number) {
  const uint32_t slots = endpoint_.shape().send_slots;
  // Over UD, where duplicates may fill the queue, the peer asks again.
  if (sends_open_ == slots) return;
  const auto slot = static_cast<uint32_t>(answers_ % slots);
  write_message(endpoint_.send_slot(slot), number, Way::back, verify_);
  endpoint_.post_send(slot, true, number);
  ++answers_;
  ++sends_open_;
}

}  // namespace diwarp::tools
