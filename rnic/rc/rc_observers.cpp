// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_observers.h"

#include <utility>

namespace diwarp::rnic {

void RcObservers::observe(std::shared_ptr<ConnectionObserver> observer) {
  const auto before = std::exchange(observer_, std::move(observer));
  if (before) before->on_detached();
}

void RcObservers::wake_waiters() {
  for (Waiter* waiter = waiters_.front(); waiter != nullptr; waiter = waiters_.next(*waiter))
    waiter->blocking_wait.wake();
}

}  // namespace diwarp::rnic
