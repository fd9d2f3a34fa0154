// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

/// The errors of calls. Inside the fake they are exceptions; guarded() (injection.h) turns them
/// into what the C function returns.
namespace fake {

/// A call is refused with this errno.
struct Failure {
  int error;
};

[[noreturn]] inline void refuse(int error) { throw Failure{error}; }

inline void refuse_if(bool wrong, int error) {
  if (wrong) refuse(error);
}

/// The errno that stands for a code of diwarp's or the system's.
inline int errno_of(const std::error_code& code) {
  const std::error_condition condition = code.default_error_condition();
  const bool known = condition.category() == std::generic_category();
  return known ? condition.value() : EINVAL;
}

/// The errno of the exception that is being handled.
int current_errno() noexcept;

}  // namespace fake
