// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_direct_placement.h"

#include <algorithm>

namespace diwarp::rnic {

void RcDirectPlacement::begin(const mpa::PartialFpdu& partial, const rdmap::StreamSegment& segment,
                              size_t placed, bool took_receive) {
  const ConstBytes header = partial.ulpdu.first(partial.ulpdu.size() - placed);
  std::copy(header.begin(), header.end(), header_.begin());
  header_bytes_ = static_cast<uint8_t>(header.size());
  segment_ = segment;
  placed_ = placed;
  trailer_ = partial.trailer;
  took_receive_ = took_receive;
  under_way_ = true;
}

/// After the payload come the trailer and the next header, which is probably of the same kind.
size_t RcDirectPlacement::room(const ddp::PlacementTarget& target, Bytes buffer,
                               Pieces& pieces) const {
  const size_t count = target.pieces(placed_, segment_.missing - placed_, pieces);
  pieces[count] = buffer.first(trailer_ + mpa::kLengthBytes + header_bytes_);
  return count + 1;
}

std::optional<ConstBytes> RcDirectPlacement::add(size_t came, ConstBytes buffer) {
  const size_t placed = std::min(came, segment_.missing - placed_);
  const size_t after = came - placed;
  placed_ += placed;
  if (after < trailer_) {  // guard(direct-placement): condition => came == 0
    trailer_ -= after;
    return std::nullopt;
  }
  return buffer.first(after).subspan(trailer_);
}

}  // namespace diwarp::rnic
