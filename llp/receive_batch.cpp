// SPDX-License-Identifier: Apache-2.0
#include "diwarp/error.h"
#include "llp/datagram_link.h"

namespace diwarp::llp {

ReceiveBatch::ReceiveBatch(size_t slots, size_t slot_bytes, size_t max_datagrams)
    : slots_(slots),
      slot_bytes_(slot_bytes),
      // Left as it comes: pages that no datagram reaches are never touched.
      memory_(std::make_unique_for_overwrite<std::byte[]>(slots * slot_bytes)),
      datagrams_(max_datagrams) {
  added_.reserve(slots);
}

void ReceiveBatch::return_added() {
  owner_->return_buffers(added_);
  owner_.reset();
  added_.clear();
}

void ReceiveBatch::add_buffer(const std::shared_ptr<BufferOwner>& owner, uint16_t buffer) {
  if (owner_ == nullptr) owner_ = owner;
  added_.push_back(buffer);
}

std::unique_ptr<DatagramLink> DatagramLink::open_group(const Address& group, std::string_view) {
  throw Error(Errc::unsupported_operation,
              "Group " + group.to_string() + " cannot be joined on a link of this kind");
}

}  // namespace diwarp::llp
