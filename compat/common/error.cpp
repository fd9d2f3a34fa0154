// SPDX-License-Identifier: Apache-2.0
#include "compat/common/error.h"

#include <diwarp/error.h>

#include <cerrno>
#include <new>

namespace diwarp::compat {
namespace {

struct ErrnoOfCode {
  Errc code;
  int value;
};
/// Where rdma-core has another value than the code's own error condition.
constexpr ErrnoOfCode kSpecial[] = {
    {Errc::queue_full, ENOMEM},
    {Errc::no_resources, ENOMEM},
    {Errc::invalid_destination, EINVAL},
    {Errc::invalid_state, EINVAL},
    {Errc::too_many_sges, EINVAL},
    {Errc::inline_too_large, EINVAL},
    {Errc::message_too_large, EINVAL},
    {Errc::device_gone, ENODEV},
    {Errc::unsupported_operation, EOPNOTSUPP},
    {Errc::invalid_argument, EINVAL},
    {Errc::address_in_use, EADDRINUSE},
    {Errc::connection_lost, ECONNRESET},
};

}  // namespace

int errno_of(const std::error_code& error) noexcept {
  for (const ErrnoOfCode& one : kSpecial)
    if (error == make_error_code(one.code)) return one.value;
  const std::error_condition condition = error.default_error_condition();
  const bool known = condition.category() == std::generic_category() && condition.value() != 0;
  return known ? condition.value() : EIO;
}

int errno_of_current_exception() noexcept {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.code();
  } catch (const std::system_error& error) {
    return errno_of(error.code());
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (...) {
    return EIO;
  }
}

}  // namespace diwarp::compat
