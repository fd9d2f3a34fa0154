// SPDX-License-Identifier: Apache-2.0
#include "rnic/queue_pair_factory.h"

#include "rnic/datagram/rd/rd_queue_pair.h"
#include "rnic/datagram/ud/ud_queue_pair.h"
#include "rnic/rc/rc_queue_pair.h"

namespace diwarp::rnic {

std::shared_ptr<QueuePair> make_queue_pair(std::shared_ptr<ProtectionDomain> domain,
                                           const QueuePairInit& init) {
  if (init.type == QpType::ud) return std::make_shared<UdQueuePair>(std::move(domain), init);
  if (init.type == QpType::rd) return std::make_shared<RdQueuePair>(std::move(domain), init);
  return std::make_shared<RcQueuePair>(std::move(domain), init);
}

}  // namespace diwarp::rnic
