// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "diwarp/attributes.h"
#include "diwarp/detail/handle.h"
#include "diwarp/memory.h"
#include "diwarp/queue_options.h"
#include "diwarp/types.h"

namespace diwarp {

namespace provider {
class SharedReceiveQueue;
}

/// Receives that several queue pairs of a protection domain take from, in the order in which
/// messages come. Name it in QueuePairInit::srq.
class DIWARP_EXPORT SharedReceiveQueue {
 public:
  /// Throws Error if an option is out of its range.
  explicit SharedReceiveQueue(const ProtectionDomain& pd,
                              const SharedReceiveQueueOptions& options = {});

  /// Posts a receive. Errors: queue_full, too_many_sges, message_too_large, device_gone,
  /// moved_from.
  std::error_code post_recv(const ReceiveWorkRequest& request) noexcept;
  /// Posts several in order, as QueuePair::post_recvs() does.
  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests, size_t& posted) noexcept;

  /// From now on one srq_limit_reached event when fewer than `limit` receives are posted (at once,
  /// if that is so); 0: none. The event disarms it.
  void set_limit(uint32_t limit);

  SharedReceiveQueueAttributes query() const;

 private:
  friend class SharedReceiveQueueRef;
  friend class detail::HandleAccess;
  detail::Handle<provider::SharedReceiveQueue> impl_;
};

/// Names a shared receive queue in QueuePairInit; made from a SharedReceiveQueue, which must not
/// be dead (else it throws Error).
class SharedReceiveQueueRef {
 public:
  SharedReceiveQueueRef() = default;
  SharedReceiveQueueRef(const SharedReceiveQueue& srq)  // NOLINT: meant to convert
      : impl_(srq.impl_.shared()) {}

 private:
  friend class detail::HandleAccess;
  std::shared_ptr<provider::SharedReceiveQueue> impl_;
};

}  // namespace diwarp
