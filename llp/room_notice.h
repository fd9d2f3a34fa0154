// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp::llp {

/// How a stream that is full tells that there is room again.
enum class RoomNotice : uint8_t {
  descriptor,    ///< its descriptor polls writable
  announcement,  ///< it announces itself in its input_queue()
  none,          ///< it does not, and is to be asked again soon
};

}  // namespace diwarp::llp
