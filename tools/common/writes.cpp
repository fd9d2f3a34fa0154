// SPDX-License-Identifier: Apache-2.0
#include "common/writes.h"

#include <string>
#include <thread>

#include "common/failure.h"
#include "common/pairing.h"
#include "common/spin.h"

namespace diwarp::tools {

using std::chrono::steady_clock;

EndpointShape writes_shape(size_t size) {
  return {.transport = QpType::rc,
          .operation = Operation::write,
          .grants = Access::remote_write,
          .send_size = size,
          .send_slots = WrittenMessages::kSlots,
          .receive_size = size,
          .receive_slots = WrittenMessages::kSlots};
}

WrittenMessages::WrittenMessages(Endpoint& endpoint, Control& control, bool verify, Way way,
                                 Waiting waiting)
    : endpoint_(endpoint),
      control_(control),
      verify_(verify),
      way_(way),
      waiting_(waiting),
      limit_(control.timeout() + patience(endpoint.shape().send_size, 2)) {}

void WrittenMessages::prepare(uint64_t number) {
  const std::span<std::byte> message = endpoint_.send_slot(slot_of(number));
  write_message(contents_of(message), number, way_, verify_);
  set_mark(message, number / kSlots);
}

bool WrittenMessages::await(uint64_t number) {
  constexpr Duration kBetweenLinkChecks = std::chrono::seconds(1);
  const Time deadline = steady_clock::now() + limit_;
  const auto step = [&] { return look(number); };
  const auto rest = [&](Duration limit) {
    std::this_thread::sleep_for(limit);
    return step();
  };
  while (
      !spin(control_, std::min(deadline, steady_clock::now() + kBetweenLinkChecks), step, rest)) {
    endpoint_.check_link();
    if (control_.pending() || steady_clock::now() >= deadline) return false;
  }
  if (verify_) verify(number);
  return true;
}

bool WrittenMessages::look(uint64_t number) {
  if (is_marked(endpoint_.receive_slot(slot_of(number)), number / kSlots)) return true;
  if (waiting_ == Waiting::progressing)
    endpoint_.progress();
  else
    std::this_thread::yield();  // the RNIC thread may want this processor
  return false;
}

void WrittenMessages::verify(uint64_t number) {
  const Way way = way_ == Way::there ? Way::back : Way::there;
  const auto contents = contents_of(endpoint_.receive_slot(slot_of(number)));
  const auto wrong = lasting_difference(contents, number, way);
  if (wrong) fail_contents(number, endpoint_.shape().receive_size, endpoint_.peer(), *wrong);
}

void WrittenMessages::fail_silence() const {
  throw Failure("No message came from " + endpoint_.peer().to_string() + " within " +
                to_text(limit_) + ".");
}

WritePinger::WritePinger(Endpoint& endpoint, Control& control, bool verify, Waiting waiting)
    : messages_(endpoint, control, verify, Way::there, waiting) {}

std::optional<Duration> WritePinger::ping() {
  messages_.prepare(number_);
  const Time posted = steady_clock::now();
  messages_.post(number_);
  ++counts_.sent;
  if (!messages_.await(number_)) messages_.fail_silence();
  ++number_;
  return steady_clock::now() - posted;
}

WriteEchoer::WriteEchoer(Endpoint& endpoint, Control& control, bool verify, Waiting waiting)
    : control_(control), messages_(endpoint, control, verify, Way::back, waiting) {}

void WriteEchoer::run() {
  while (true) {
    messages_.prepare(number_);
    if (messages_.await(number_)) {
      messages_.post(number_);
      ++number_;
    } else if (control_.pending()) {
      return;
    } else {
      messages_.fail_silence();
    }
  }
}

}  // namespace diwarp::tools
