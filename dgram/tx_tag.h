// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// What a sequenced datagram carries: a part of a message, by which its owner makes it anew when it
/// has to be sent again.
struct TxTag {
  MessageName message = {};
  uint32_t object = 0;  ///< the owner's number of what it sends, by the kind of message
  uint32_t offset = 0;
  uint32_t length = 0;
  bool failure = false;  ///< it ends a Read Response, and has no part of it
};

}  // namespace diwarp::dgram
