// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/datagram_builder.h"

#include <algorithm>

#include "dgram/identity.h"

namespace diwarp::rnic {

size_t DatagramBuilder::max_body(const Address& to) {
  const size_t path = link_.max_datagram(to);
  return dgram::Envelope::max_body(segment_ == 0 ? path : std::min<size_t>(segment_, path));
}

void DatagramBuilder::add(const llp::Destination& to, const Kind& kind, size_t header_bytes,
                          size_t payload_pieces, const DatagramTag& tag) {
  const size_t front = dgram::Envelope::kPrefixBytes + header_bytes;
  const size_t bytes =
      burst_.sealer().seal({kind.datagram_class, kind.flags, identity_.incarnation(to.address)},
                           burst_.header().first(front),
                           burst_.payload_pieces().first(payload_pieces), burst_.trailer(front));
  burst_.add(to, front, payload_pieces, bytes, tag);
  pacer_.spend(bytes);
}

}  // namespace diwarp::rnic
