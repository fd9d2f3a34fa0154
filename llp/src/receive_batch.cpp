// SPDX-License-Identifier: Apache-2.0
#include "llp/datagram.h"

namespace diwarp::llp {

ReceiveBatch::ReceiveBatch(size_t slots, size_t slot_bytes, size_t max_datagrams)
    : slots_(slots),
      slot_bytes_(slot_bytes),
      // Left as it comes: pages that no datagram reaches are never touched.
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots * slot_bytes)),
      datagrams_(max_datagrams) {}

bool ReceiveBatch::add(const Address& from, ConstBytes bytes) {
  if (count_ == datagrams_.size()) return false;
  datagrams_[count_++] = {from, bytes};
  return true;
}

}  // namespace diwarp::llp
