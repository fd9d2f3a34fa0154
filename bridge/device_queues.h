// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "bridge/async_events.h"
#include "bridge/completion_queue.h"
#include "bridge/owned.h"
#include "bridge/protection_domain.h"
#include "bridge/work_table.h"
#include "provider/queue_pair_init.h"

namespace diwarp::bridge {

class SharedReceiveQueue;

/// The objects that a queue pair is made with.
struct QueuePairParts {
  std::shared_ptr<ProtectionDomain> domain;
  std::shared_ptr<CompletionQueue> send_cq;
  std::shared_ptr<CompletionQueue> recv_cq;
  std::shared_ptr<SharedReceiveQueue> srq;  // may be null
};

/// A queue pair of the device, in init, and the tables of what it holds. A queue pair that is reset
/// gets another one.
class DeviceQueues {
 public:
  /// Throws Error.
  DeviceQueues(const QueuePairParts& parts, const QueuePairCapacity& capacity);
  ~DeviceQueues();
  DeviceQueues(const DeviceQueues&) = delete;
  DeviceQueues& operator=(const DeviceQueues&) = delete;

  ibv_qp* get() const { return queue_pair_.get(); }
  uint32_t number() const { return queue_pair_->qp_num; }
  QueueTable& sends() { return *sends_; }
  QueueTable& receives() { return *receives_; }

  /// To error: the device flushes what it holds.
  void enter_error();
  /// The device is gone: what it holds is flushed here.
  void flush();
  /// Completions that nobody has polled go when this does.
  void drop_completions() { keeps_completions_ = false; }

 private:
  void attach(const QueuePairCapacity& capacity);
  void detach();

  const QueuePairParts parts_;
  Owned<ibv_qp> queue_pair_;
  std::optional<QueueTable> sends_;
  std::optional<QueueTable> receives_;
  bool keeps_completions_ = true;
};

}  // namespace diwarp::bridge
