// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "bridge/refuse.h"
#include "bridge/sigpipe_guard.h"

namespace diwarp::bridge {

/// An object could not be ended: it stays, and with it what it rests on.
void log_left(int error);

/// Ends an object of rdma-core's with the function that it has for that.
template <class Object>
struct Destroy {
  int (*function)(Object*) = nullptr;
  void operator()(Object* object) const {
    const SigpipeGuard guard;
    if (const int error = errno_of(function(object))) log_left(error);
  }
};

template <class Object>
using Owned = std::unique_ptr<Object, Destroy<Object>>;

}  // namespace diwarp::bridge
