// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace diwarp::rnic {

/// Has a queue pair served soon: it has something to send, or to go on with. With the baton.
class Waker {
 public:
  Waker() = default;
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  virtual void wake() = 0;

 protected:
  ~Waker() = default;
};

}  // namespace diwarp::rnic
