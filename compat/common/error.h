// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The errno value for an error of the library's calls. A full queue is ENOMEM, as libibverbs'
/// providers have it.
int errno_of(const std::error_code& error) noexcept;
/// The same for the exception that is being handled.
int errno_of_current_exception() noexcept;

}  // namespace diwarp::compat
