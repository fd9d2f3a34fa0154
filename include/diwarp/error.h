// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <diwarp/export.h>

namespace diwarp {

/// The errors of the library's own calls. Each has a message that says what to do, and an errno
/// value as its error condition, so that `code == std::errc::timed_out` works.
enum class Errc {
  queue_full = 1,
  invalid_state,
  too_many_sges,
  inline_too_large,
  message_too_large,
  invalid_destination,
  unsupported_operation,
  invalid_argument,
  device_gone,
  timed_out,
  rejected,
  connection_lost,
  protocol_error,
  address_in_use,
  no_resources,
  moved_from,
  loopback_device,
};

/// The category "diwarp" of Errc.
DIWARP_EXPORT const std::error_category& error_category() noexcept;

/// Found by std::error_code, which thus converts from Errc.
inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

/// The exception of set-up calls: a code (Errc or an errno of the system) and a message about the
/// case.
class DIWARP_EXPORT Error : public std::system_error {
 public:
  Error(std::error_code code, const std::string& message) : std::system_error(code, message) {}
};

/// The peer answered a connection request with a reject.
class DIWARP_EXPORT RejectedError : public Error {
 public:
  RejectedError(const std::string& message, std::vector<std::byte> private_data)
      : Error(make_error_code(Errc::rejected), message), private_data_(std::move(private_data)) {}
  const std::vector<std::byte>& private_data() const { return private_data_; }

 private:
  std::vector<std::byte> private_data_;
};

}  // namespace diwarp

template <>
struct std::is_error_code_enum<diwarp::Errc> : std::true_type {};
