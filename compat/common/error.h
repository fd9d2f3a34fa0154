// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <system_error>

namespace diwarp::compat {

/// A call that is refused, with the errno value that the caller gets.
class Refusal {
 public:
  explicit Refusal(int code) : code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

inline void refuse_if(bool wrong, int code) {
  if (wrong) throw Refusal(code);
}

/// The same for a system call, or a function of libibverbs, that has failed. It looks at errno
/// itself: as an argument that might be read before the call.
inline void refuse_by_errno_if(bool failed) {
  if (failed) throw Refusal(errno != 0 ? errno : EIO);
}

/// The errno value for an error of the library's calls. A full queue is ENOMEM, as libibverbs'
/// providers have it.
int errno_of(const std::error_code& error) noexcept;
/// The same for the exception that is being handled.
int errno_of_current_exception() noexcept;

}  // namespace diwarp::compat
