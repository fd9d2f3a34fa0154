// SPDX-License-Identifier: Apache-2.0
#include "rnic/domain_objects.h"

#include "diwarp/error.h"
#include "rnic/datagram/rd/rd_queue_pair.h"
#include "rnic/datagram/reach.h"
#include "rnic/datagram/ud/ud_queue_pair.h"
#include "rnic/memory/memory_region.h"
#include "rnic/queues/shared_receive_queue.h"
#include "rnic/rc/rc_queue_pair.h"

namespace diwarp::rnic {

void DomainObjects::check_destination(const Address& destination) const {
  const Address& local = domain_->device()->address();
  if (can_reach(local, destination)) return;
  throw Error(make_error_code(Errc::invalid_destination),
              "Nothing can be sent from " + local.host() + " to " + destination.to_string() +
                  ": give an address of the same family, with the port of a queue pair");
}

std::shared_ptr<provider::MemoryRegion> DomainObjects::register_memory(std::span<std::byte> memory,
                                                                       Access access,
                                                                       std::optional<uint64_t> base,
                                                                       std::optional<STag> chosen) {
  return std::make_shared<MemoryRegion>(domain_, memory, access, base, chosen);
}

std::shared_ptr<provider::SteeringTag> DomainObjects::make_window(std::optional<STag> chosen) {
  const ddp::Region window{
      .stag = chosen.value_or(0), .kind = ddp::EntryKind::window, .valid = false};
  return std::make_shared<SteeringTag>(domain_, window, chosen.has_value());
}

std::shared_ptr<provider::SteeringTag> DomainObjects::make_fast_registration(uint64_t max_length) {
  return std::make_shared<SteeringTag>(
      domain_,
      ddp::Region{
          .kind = ddp::EntryKind::fast_registration, .valid = false, .max_length = max_length});
}

std::shared_ptr<provider::SharedReceiveQueue> DomainObjects::make_shared_receive_queue(
    const SharedReceiveQueueOptions& options) {
  return std::make_shared<SharedReceiveQueue>(domain_, options);
}

std::shared_ptr<provider::QueuePair> DomainObjects::make_queue_pair(
    const provider::QueuePairInit& init) {
  if (init.type == QpType::ud) return std::make_shared<UdQueuePair>(domain_, init);
  if (init.type == QpType::rd) return std::make_shared<RdQueuePair>(domain_, init);
  return std::make_shared<RcQueuePair>(domain_, init);
}

}  // namespace diwarp::rnic
