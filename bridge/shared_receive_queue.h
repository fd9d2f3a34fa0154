// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "bridge/async_events.h"
#include "bridge/completion_queue.h"
#include "bridge/owned.h"
#include "bridge/protection_domain.h"
#include "bridge/work_table.h"
#include "provider/shared_receive_queue.h"

namespace diwarp::bridge {

class SharedReceiveQueue final : public provider::SharedReceiveQueue,
                                 public AsyncSubject,
                                 public ReceiveObserver {
 public:
  /// Throws Error.
  static std::shared_ptr<SharedReceiveQueue> make(std::shared_ptr<ProtectionDomain> domain,
                                                  const SharedReceiveQueueOptions& options);
  ~SharedReceiveQueue() override;

  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                             size_t& posted) noexcept override;
  void set_limit(uint32_t limit) override;
  SharedReceiveQueueAttributes query() override;
  void on_async_event(ibv_event_type type, const void* object) override;

  ibv_srq* get() const { return srq_.get(); }
  const ProtectionDomain& domain() const { return *domain_; }
  uint32_t capacity() const { return capacity_; }
  SharedTable& table() { return table_; }
  void on_receive_taken() override;

 private:
  SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                     const SharedReceiveQueueOptions& options);
  std::error_code give_limit(uint32_t limit) noexcept;
  void arm_pending_limit() noexcept;
  void tell_limit();

  const std::shared_ptr<ProtectionDomain> domain_;
  const SharedReceiveQueueOptions options_;
  const uint32_t capacity_;
  Owned<ibv_srq> srq_;
  SharedTable table_;
  std::atomic<uint32_t> limit_{0};
  std::atomic<uint32_t> pending_limit_{0};  // that the device does not have yet
  std::mutex mutex_;                        // one post at a time
  std::vector<ibv_sge> sges_;
};

}  // namespace diwarp::bridge
