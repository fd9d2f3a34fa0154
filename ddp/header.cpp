// SPDX-License-Identifier: Apache-2.0
#include "ddp/header.h"

namespace diwarp::ddp {

using namespace detail;

std::optional<uint8_t> peek_version(ConstBytes in) {
  if (in.empty()) return std::nullopt;
  return static_cast<uint8_t>(std::to_integer<uint8_t>(in[0]) & kVersionMask);
}

bool peek_tagged(ConstBytes in) {
  return !in.empty() && (std::to_integer<uint8_t>(in[0]) & kTaggedBit) != 0;
}

}  // namespace diwarp::ddp
