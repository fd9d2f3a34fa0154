// SPDX-License-Identifier: Apache-2.0
#include "rdmap/request_checks.h"

#include <span>

#include "diwarp/error.h"
#include "rdmap/bodies.h"

namespace diwarp::rdmap {
namespace {

/// The operand of an atomic operation (RFC 7306 section 5).
constexpr size_t kAtomicBytes = 8;

std::error_code check_sges(SgeRule rule, std::span<const Sge> sges) {
  const auto valid_if = [](bool fits) {
    return fits ? std::error_code() : make_error_code(Errc::invalid_argument);
  };
  switch (rule) {
    case SgeRule::none:
      return valid_if(sges.empty());
    case SgeRule::any:
      break;
    case SgeRule::at_most_one:
      return sges.size() <= 1 ? std::error_code() : make_error_code(Errc::too_many_sges);
    case SgeRule::one:
      return valid_if(sges.size() == 1);
    case SgeRule::one_of_8_bytes:
      return valid_if(sges.size() == 1 && sges[0].length == kAtomicBytes);
  }
  return {};
}

}  // namespace

std::error_code check_stream_request(const SendWorkRequest& request) noexcept {
  const WrInfo& info = info_of(request.opcode);
  if (!info.on_streams) return Errc::unsupported_operation;
  if (!info.gathers && has(request.flags, SendFlags::inline_data)) return Errc::invalid_argument;
  if (request.immediate.has_value() != info.takes(Operands::immediate))
    return Errc::invalid_argument;
  if (passes_end(info, request)) return Errc::invalid_argument;
  return check_sges(info.sges, request.sges);
}

}  // namespace diwarp::rdmap
