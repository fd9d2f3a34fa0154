// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace soak {

/// What a Send begins with, if it is so long.
struct Head {
  uint32_t magic = kMagic;
  uint32_t life = 0;
  uint16_t from = 0;
  uint8_t type = 0;
  uint8_t operation = 0;
  uint32_t length = 0;
  uint64_t number = 0;  ///< of the Sends to this peer (RC: over this connection), from 1
  uint64_t offer = 0;   ///< send_invalidate, tell
  uint32_t at = 0;      ///< tell: the bytes that were written
  uint32_t written = 0;
  uint64_t opened = 0;  ///< datagrams: which of its queue pairs' sources sent it, from 1
  static constexpr uint32_t kMagic = 0x50a15eed;
};
static_assert(sizeof(Head) == 48);

}  // namespace soak
