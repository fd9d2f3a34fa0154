// SPDX-License-Identifier: Apache-2.0
#include <isa-l/crc.h>

#include <algorithm>

#include "base/crc32c.h"

namespace diwarp {

uint32_t crc32c_isal_update(uint32_t state, ConstBytes data) {
  constexpr size_t kMost = size_t{1} << 30;  // the length is an int there
  while (!data.empty()) {
    const ConstBytes piece = data.first(std::min(data.size(), kMost));
    // ISA-L only reads, though its parameter is not const.
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(piece.data()));
    state = crc32_iscsi(bytes, static_cast<int>(piece.size()), state);
    data = data.subspan(piece.size());
  }
  return state;
}

}  // namespace diwarp
