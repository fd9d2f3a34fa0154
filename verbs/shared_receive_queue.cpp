// SPDX-License-Identifier: Apache-2.0
#include "diwarp/shared_receive_queue.h"

#include "provider/protection_domain.h"
#include "provider/shared_receive_queue.h"
#include "verbs/handle_access.h"

namespace diwarp {

SharedReceiveQueue::SharedReceiveQueue(const ProtectionDomain& pd,
                                       const SharedReceiveQueueOptions& options)
    : impl_(impl_of(pd)->make_shared_receive_queue(options)) {}

std::error_code SharedReceiveQueue::post_recv(const ReceiveWorkRequest& request) noexcept {
  size_t posted = 0;
  return post_recvs({&request, 1}, posted);
}

std::error_code SharedReceiveQueue::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                               size_t& posted) noexcept {
  posted = 0;
  provider::SharedReceiveQueue* const object = impl_.alive();
  return object != nullptr ? object->post_recvs(requests, posted) : impl_.fault();
}

void SharedReceiveQueue::set_limit(uint32_t limit) { impl_->set_limit(limit); }

SharedReceiveQueueAttributes SharedReceiveQueue::query() const { return impl_->query(); }

}  // namespace diwarp
