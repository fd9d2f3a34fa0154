// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "base/log.h"
#include "ddp/protection_context.h"
#include "diwarp/attributes.h"
#include "diwarp/queue_options.h"
#include "diwarp/types.h"
#include "provider/queue_pair.h"
#include "provider/queue_pair_init.h"
#include "rdmap/opcodes.h"
#include "rnic/engine/endpoint.h"
#include "rnic/engine/engine.h"
#include "rnic/memory/protection_domain.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/receive_buffers.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// Throws Error(invalid_argument) unless lowest <= value <= highest.
void check_range(const char* what, uint32_t value, uint32_t lowest, uint32_t highest);

/// The common part of queue pairs of all types: the queues, the state, posting and reporting. Each
/// type sends and receives by itself.
class QueuePair : public provider::QueuePair, public Endpoint {
 public:
  /// Checks the arguments that all types share. Throws Error.
  QueuePair(std::shared_ptr<ProtectionDomain> domain, const provider::QueuePairInit& init);
  ~QueuePair() override;

  // --- Any thread, without the baton.

  std::error_code post_sends(std::span<const SendWorkRequest> requests,
                             size_t& posted) noexcept final;
  std::error_code post_all_sends(std::span<const SendWorkRequest> requests) noexcept final;
  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                             size_t& posted) noexcept final;
  /// Moves the state by hand. Throws Error(invalid_state) where the table has no such move.
  void modify(QpState to) final;
  void set_remote_access(Access accesses) final;
  QpState state() const final { return state_.load(std::memory_order_acquire); }
  QpType type() const { return type_; }
  QueuePairAttributes query() override;

  const std::shared_ptr<DeviceContext>& device() const { return domain_->device(); }

 protected:
  /// The type's own rules for a send, beyond those of the queue.
  virtual std::error_code check_send(const SendWorkRequest& request) const noexcept = 0;
  /// With the baton, after the state has become `now`: the type's own half of the move. Called
  /// for moves by hand and by enter_error().
  virtual void on_state(QpState now) = 0;

  // --- With the baton.

  /// Sets the state; from then on posts see it.
  void set_state(QpState to);
  /// To the error state: everything that is posted is flushed and reported.
  void enter_error();
  /// In the error state: what was posted since is flushed, and waits to be reported. The type calls
  /// it when it is to transmit and has no connection, or is out of service.
  void flush_withheld();
  /// Before destruction: out of service, and nothing of a shared receive queue is kept.
  void retire();
  /// Hands finished work to the completion queues. False if some of it has to wait for room.
  virtual bool report();
  /// The same of one kind; of receives those that were among the first `up_to` to be completed.
  bool report_sends() { return sends_.report(*send_cq_, protection_.queue_pair()); }
  bool report_receives(uint64_t up_to) {
    return receives_.report(*recv_cq_, up_to, protection_.queue_pair());
  }
  void raise(AsyncEventType type, std::optional<TerminateInfo> terminate = {},
             std::error_code status = {});
  /// The states in which sends may be posted.
  virtual bool may_post_sends(QpState state) const { return state == QpState::rts; }

  Engine& engine() { return engine_; }
  Counters& counters() { return engine_.counters(); }
  /// The counters of what peers do, which the log tells of.
  const LoggedCounters& logged() const { return logged_; }
  log::Subject subject() const { return logged_.subject(); }

  CompletionQueue& recv_cq() { return *recv_cq_; }
  ReceiveBuffers& receives() { return receives_; }
  ddp::ProtectionContext& protection() { return protection_; }
  /// The constructor of the queue pair's type, which knows it.
  void set_number(uint32_t number);

  SendQueue sends_;

 private:
  std::error_code add_recvs(std::span<const ReceiveWorkRequest> requests, size_t& posted) noexcept;
  [[gnu::cold]] std::error_code trace_recvs(std::span<const ReceiveWorkRequest> requests,
                                            size_t& posted) noexcept;
  std::error_code add_send(const SendWorkRequest& request) noexcept;
  [[gnu::cold]] std::error_code withhold_recvs(std::span<const ReceiveWorkRequest> requests,
                                               size_t& posted) noexcept;
  void flush();

  const QpType type_;
  std::atomic<QpState> state_{QpState::reset};
  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<CompletionQueue> send_cq_;
  std::shared_ptr<CompletionQueue> recv_cq_;
  const QueuePairCapacity capacity_;
  ReceiveBuffers receives_;
  ddp::ProtectionContext protection_;
  Engine& engine_;
  LoggedCounters logged_;
};

}  // namespace diwarp::rnic
