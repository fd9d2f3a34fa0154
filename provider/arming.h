// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace diwarp::provider {

/// A completion queue's wish for an event, over a device whose events may come late, or for
/// completions that are not shown. So the wish is not over with the first event: it ends when the
/// application, which was told, has polled a completion.
class Arming {
 public:
  void arm() { state_ = State::armed; }
  bool outstanding() const { return state_ != State::idle; }
  /// There is an event. False where nobody waits for one.
  bool tell() {
    State expected = State::armed;
    return state_.compare_exchange_strong(expected, State::told) || expected == State::told;
  }
  /// The application has polled a completion.
  void polled() {
    State expected = State::told;
    if (state_ == State::told) state_.compare_exchange_strong(expected, State::idle);
  }

 private:
  enum class State : uint8_t { idle, armed, told };

  std::atomic<State> state_{State::idle};
};

}  // namespace diwarp::provider
