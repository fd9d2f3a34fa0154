// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

#include "base/offsets.h"
#include "ddp/scatter.h"
#include "diwarp/types.h"
#include "rdmap/opcodes.h"

/// What the operation of a work request allows, whatever carries it out.
namespace diwarp::rdmap {

/// Whether the request's remote memory would go beyond the last tagged offset.
inline bool passes_end(const WrInfo& info, const SendWorkRequest& request) {
  return info.takes(Operands::remote_memory) &&
         wraps(request.remote.offset, ddp::total_length(request.sges));
}

/// Over streams: unsupported_operation, or invalid_argument for SGEs, flags, immediate data or
/// tagged offsets that the operation does not take. No code where it is right.
std::error_code check_stream_request(const SendWorkRequest& request) noexcept;

}  // namespace diwarp::rdmap
