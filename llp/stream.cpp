// SPDX-License-Identifier: Apache-2.0
#include "llp/stream.h"

namespace diwarp::llp {

IoResult Stream::receive_into(std::span<const Bytes> buffers) {
  IoResult whole{IoStatus::would_block, 0, 0};
  for (const Bytes buffer : buffers) {
    const IoResult result = receive(buffer);
    if (result.status != IoStatus::ok) return whole.bytes != 0 ? whole : result;
    whole = {IoStatus::ok, whole.bytes + result.bytes, 0};
    if (result.bytes != buffer.size()) break;
  }
  return whole;
}

}  // namespace diwarp::llp
