// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <system_error>

#include "base/blocking_wait.h"
#include "base/intrusive_list.h"
#include "rnic/context/connection_observer.h"

namespace diwarp::rnic {

/// Those that are told what becomes of the connection of an RC queue pair: an observer, and the
/// threads that wait for its end. With the baton.
class RcObservers {
 public:
  /// A thread that waits for the connection's end. It is woken once, and then looks at the state.
  struct Waiter : ListNode<> {
    BlockingWait blocking_wait;
  };

  /// The observer that is told about connections from now on; null: none. The one before is told
  /// that it is none any more.
  void observe(std::shared_ptr<ConnectionObserver> observer);
  /// Until the waiter leaves the list.
  void add(Waiter& waiter) { waiters_.push_back(waiter); }

  void tell_ready() {
    if (observer_) observer_->on_ready();
  }
  void tell_end(std::error_code status) {
    if (observer_) observer_->on_end(status);
  }
  void wake_waiters();

 private:
  std::shared_ptr<ConnectionObserver> observer_;  // may be null
  IntrusiveList<Waiter> waiters_;
};

}  // namespace diwarp::rnic
