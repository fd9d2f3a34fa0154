// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cxxabi.h>

#include <cerrno>
#include <utility>

#include "compat/common/error.h"

/// The outer face of both libraries: no exception leaves a C function. Each of these runs `body`
/// and turns an exception into what the function gives by its own convention.
///
/// A thread that is cancelled while it waits, as programs do with those that wait for events,
/// unwinds its stack like an exception, and must not be stopped. So nothing on that way is
/// noexcept.
namespace diwarp::compat {

/// 0, or an errno value: most functions of libibverbs.
template <class Body>
int errno_value(Body&& body) {
  try {
    std::forward<Body>(body)();
    return 0;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return errno = errno_of_current_exception();
  }
}

/// 0, or -1 with errno: functions of librdmacm, and some of libibverbs.
template <class Body>
int minus_one(Body&& body) {
  return errno_value(std::forward<Body>(body)) == 0 ? 0 : -1;
}

/// What `body` returns, a pointer, or null with errno.
template <class Body>
auto or_null(Body&& body) -> decltype(body()) {
  decltype(body()) made = nullptr;
  errno_value([&] { made = std::forward<Body>(body)(); });
  return made;
}

/// Nothing at all.
template <class Body>
void quietly(Body&& body) {
  const int before = errno;
  errno_value(std::forward<Body>(body));
  errno = before;
}

}  // namespace diwarp::compat
