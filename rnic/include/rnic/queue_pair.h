// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

#include "ddp/stag_table.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "rnic/completion_queue.h"
#include "rnic/device.h"
#include "rnic/endpoint.h"
#include "rnic/engine.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

/// What RC and UD queue pairs share: the queues, the state, posting and reporting. What they send
/// and receive is theirs alone.
class QueuePair : public Endpoint {
 public:
  /// Judges the arguments that both types share. Throws Error.
  QueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init);
  ~QueuePair() override;

  // --- Any thread, without the baton.

  std::error_code post_send(const SendWorkRequest& request) noexcept;
  std::error_code post_recv(const ReceiveWorkRequest& request) noexcept;
  /// Moves the state by hand. Throws Error(invalid_state) where the table has no such move.
  void modify(QpState to);
  QpState state() const { return state_.load(std::memory_order_acquire); }
  QpType type() const { return type_; }
  virtual uint32_t number() const = 0;
  virtual QueuePairAttributes query();

  const std::shared_ptr<Device>& device() const { return domain_->device(); }

  // --- With the baton.

  /// Whether every SGE lies in a region of this protection domain that allows what is wanted. Asked
  /// again whenever work on a request is resumed: a region may have gone meanwhile.
  bool may_send(const SendEntry& entry) const;
  bool may_receive(const ReceiveEntry& entry) const;

 protected:
  /// Type's own rules for a send, beyond those of the queue.
  virtual std::error_code check_send(const SendWorkRequest& request) const noexcept = 0;
  /// With the baton, after the state has become `now`: what belongs to the type's own half. Called
  /// for moves by hand and by enter_error().
  virtual void on_state(QpState now) = 0;

  // --- With the baton.

  /// Sets the state; from then on posts see it.
  void set_state(QpState to);
  /// To the error state: everything that is posted is flushed and reported.
  void enter_error();
  /// Hands finished work to the completion queues. False if some of it has to wait for room.
  bool report();
  /// Tells posters that this queue pair waits for a receive, and looks for one once more.
  bool await_receive();


  Engine& engine() { return engine_; }
  Counters& counters() { return engine_.counters(); }
  void drop(Counter reason) { engine_.counters().add(reason); }

  SendQueue sends_;
  ReceiveQueue receives_;

 private:
  bool check_sges(std::span<const Sge> sges, Access want) const;

  const QpType type_;
  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<CompletionQueue> send_cq_;
  std::shared_ptr<CompletionQueue> recv_cq_;
  const QueuePairCapacity capacity_;
  Engine& engine_;
  std::atomic<QpState> state_{QpState::reset};
  std::atomic<bool> awaits_receive_{false};
};

/// Makes a queue pair of the type that `init` asks for, in its first usable state.
std::shared_ptr<QueuePair> make_queue_pair(std::shared_ptr<ProtectionDomain> domain,
                                           const QueuePairInit& init);

}  // namespace diwarp::rnic
