// SPDX-License-Identifier: Apache-2.0
#include "diwarp/error.h"

#include <cerrno>

namespace diwarp {
namespace {

struct Row {
  Errc code;
  int condition;  // errno
  const char* message;
};

// In the order of Errc.
constexpr Row kRows[] = {
    {Errc::queue_full, ENOMEM,
     "The work queue is full: poll completions before posting more, or create it deeper."},
    {Errc::invalid_state, EINVAL,
     "The object's state does not allow this: bring it to the state that the call names first."},
    {Errc::too_many_sges, EINVAL,
     "The request has too many scatter/gather entries: merge some, or raise the queue's limit."},
    {Errc::inline_too_large, EINVAL,
     "The inline data is too long: send from a memory region, or raise the inline limit."},
    {Errc::message_too_large, EMSGSIZE,
     "The message is longer than the queue pair can carry: split it."},
    {Errc::invalid_destination, EDESTADDRREQ,
     "The destination is missing or cannot be reached this way: give an address with a port, of "
     "the device's family."},
    {Errc::unsupported_operation, EOPNOTSUPP,
     "This kind of queue pair, or this device, does not have the operation: see the table of "
     "operations and the device's capabilities."},
    {Errc::invalid_argument, EINVAL,
     "An argument is not acceptable: correct it as the call's documentation says."},
    {Errc::device_gone, ENODEV,
     "The device is gone (closed, or this is a forked child): open one in this process."},
    {Errc::timed_out, ETIMEDOUT,
     "The peer did not answer in time: check that it runs and can be reached, or wait longer."},
    {Errc::rejected, ECONNREFUSED,
     "The peer refused the connection: check its listener and its private data."},
    {Errc::connection_lost, ECONNRESET, "The connection is lost: reconnect with a new queue pair."},
    {Errc::protocol_error, EPROTO,
     "The peer broke the protocol: check that both ends speak the same version."},
    {Errc::address_in_use, EADDRINUSE,
     "The address is in use: choose another port, or end the program that holds it."},
    {Errc::no_resources, ENOMEM,
     "A limit of the device or the system is reached: release objects, or raise the limit."},
    {Errc::moved_from, EBADF,
     "The handle was moved from and names nothing: use the one that it was moved to."},
    {Errc::loopback_device, ENETUNREACH,
     "A device on a loopback address reaches this host alone: open it on the address from which "
     "the destination is reached (see `ip route get`), or on 0.0.0.0 or ::."},
};

constexpr bool rows_are_in_order() {
  int expected = 1;
  for (const Row& row : kRows) {
    if (static_cast<int>(row.code) != expected++) return false;
  }
  return static_cast<Errc>(expected - 1) == Errc::loopback_device;
}
static_assert(rows_are_in_order());

const Row* find(int code) {
  const bool known = code >= 1 && static_cast<size_t>(code) <= std::size(kRows);
  return known ? &kRows[code - 1] : nullptr;
}

class Category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "diwarp"; }

  std::string message(int code) const override {
    const Row* row = find(code);
    return row != nullptr ? row->message : "Unknown error " + std::to_string(code) + ".";
  }

  std::error_condition default_error_condition(int code) const noexcept override {
    const Row* row = find(code);
    if (row == nullptr) return {code, *this};
    return {row->condition, std::generic_category()};
  }
};

}  // namespace

const std::error_category& error_category() noexcept {
  static const Category category;
  return category;
}

}  // namespace diwarp
