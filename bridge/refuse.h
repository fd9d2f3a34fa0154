// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

#include "diwarp/error.h"

namespace diwarp::bridge {

[[noreturn]] inline void refuse(Errc code, const std::string& message) {
  throw Error(make_error_code(code), message);
}

/// A call of rdma-core failed with this errno.
[[noreturn]] inline void refuse_errno(int error, const std::string& message) {
  throw Error(std::error_code(error, std::system_category()), message);
}

/// Drivers return errno values with either sign, and others set errno and return -1.
inline int errno_of(int result) {
  if (result == -1) return errno;
  return result < 0 ? -result : result;
}

}  // namespace diwarp::bridge
