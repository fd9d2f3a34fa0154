// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "base/intrusive_list.h"
#include "diwarp/attributes.h"
#include "diwarp/queue_options.h"
#include "provider/shared_receive_queue.h"
#include "rnic/engine/transmit_source.h"
#include "rnic/memory/protection_domain.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

class ReceiveBuffers;
struct SrqWaitTag;

/// A receive queue that several queue pairs of one protection domain take from.
class SharedReceiveQueue final : public provider::SharedReceiveQueue, public TransmitSource {
 public:
  SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                     const SharedReceiveQueueOptions& options);
  ~SharedReceiveQueue() override;

  // --- Any thread, without the baton.

  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                             size_t& posted) noexcept override;
  void set_limit(uint32_t limit) override;
  SharedReceiveQueueAttributes query() override;
  const std::shared_ptr<ProtectionDomain>& domain() const { return domain_; }

  // --- With the baton.

  ReceiveQueue& queue() { return queue_; }
  /// A receive was taken: the limit may have been passed.
  void taken();
  /// A taken receive was given back: a queue pair that waits for one may have it.
  void given_back();
  /// The owner of `waiter` is activated when a receive is posted, or given back.
  void await(ReceiveBuffers& waiter);

  Served transmit(Time now) override;

 private:
  std::shared_ptr<ProtectionDomain> domain_;
  const SharedReceiveQueueOptions options_;
  Engine& engine_;
  ReceiveQueue queue_;
  std::atomic<bool> awaited_{false};

  // Guarded by the baton.
  uint32_t limit_ = 0;  // 0: disarmed
  IntrusiveList<ReceiveBuffers, SrqWaitTag> waiters_;
};

}  // namespace diwarp::rnic
