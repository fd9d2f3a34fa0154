// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "ddp/stag_table.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "rnic/engine/endpoint.h"
#include "rnic/engine/engine.h"
#include "rnic/memory/protection_domain.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/shared_receive_queue.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// Throws Error(invalid_argument) unless lowest <= value <= highest.
void check_range(const char* what, uint32_t value, uint32_t lowest, uint32_t highest);

/// What RC and UD queue pairs share: the queues, the state, posting and reporting. What they send
/// and receive is theirs alone.
class QueuePair : public Endpoint, public ListNode<SrqWaitTag> {
 public:
  /// Judges the arguments that both types share. Throws Error.
  QueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init);
  ~QueuePair() override;

  // --- Any thread, without the baton.

  std::error_code post_send(const SendWorkRequest& request) noexcept {
    size_t posted = 0;
    return post_sends({&request, 1}, posted);
  }
  /// In order, up to the first that fails; `posted` says how many.
  std::error_code post_sends(std::span<const SendWorkRequest> requests, size_t& posted) noexcept;
  std::error_code post_recv(const ReceiveWorkRequest& request) noexcept;
  /// Moves the state by hand. Throws Error(invalid_state) where the table has no such move.
  void modify(QpState to);
  QpState state() const { return state_.load(std::memory_order_acquire); }
  QpType type() const { return type_; }
  virtual uint32_t number() const = 0;
  virtual QueuePairAttributes query();

  const std::shared_ptr<DeviceContext>& device() const { return domain_->device(); }

  // --- With the baton.

  /// Whether every SGE lies in a region of this protection domain that allows what is wanted. Asked
  /// again whenever work on a request is resumed: a region may have gone meanwhile.
  bool may_send(const SendEntry& entry) const;
  bool may_receive(const ReceiveEntry& entry) const { return may_write(entry.sges()); }
  bool may_write(std::span<const Sge> sges) const { return check_sges(sges, Access::local_write); }
  /// Does a request that needs nothing sent: invalidates, binds, registers.
  virtual WcStatus do_local(const SendEntry& entry);
  /// The next receive, which is then the caller's to complete or give back; null where there is
  /// none.
  ReceiveEntry* take_receive();
  ReceiveEntry* peek_receive() { return receives_.peek(); }
  void give_back_receive(ReceiveEntry& entry);
  /// Of `completion` what can be said of a receive: no validity map.
  void complete_receive(ReceiveEntry& entry, const WorkCompletion& completion) {
    done_receives_.add(entry, completion);
  }
  size_t available_receives() const { return receives_.available(); }
  ReceiveShares& receive_shares() { return receives_.shares(); }
  /// A Send that is over holds no receive any more: other queue pairs with the same shared receive
  /// queue may wait for that.
  void receive_share_given_back();
  CompletionQueue& recv_cq() { return *recv_cq_; }
  /// Receives that were completed and reported, ever.
  uint64_t completed_receives() const { return done_receives_.added(); }
  uint64_t reported_receives() const { return done_receives_.reported(); }

  uint32_t domain_number() const { return domain_->number(); }
  ddp::STagTable& regions() const { return domain_->device()->regions(); }

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
  /// Before destruction: out of service, and nothing of a shared receive queue is kept.
  void retire();
  /// Hands finished work to the completion queues. False if some of it has to wait for room.
  virtual bool report();
  /// The same of one kind; of receives those that were among the first `up_to` to be completed.
  bool report_sends() { return sends_.report(*send_cq_, number()); }
  bool report_receives(uint64_t up_to) {
    return done_receives_.report(*recv_cq_, receives_, up_to, number());
  }
  /// Tells posters that this queue pair waits for a receive, and looks for one once more.
  bool await_receive();
  void raise(AsyncEventType type, std::optional<TerminateInfo> terminate = {},
             std::error_code status = {});
  /// The states in which sends may be posted.
  virtual bool may_post_sends(QpState state) const { return state == QpState::rts; }

  Engine& engine() { return engine_; }
  Counters& counters() { return engine_.counters(); }
  void drop(Counter reason) { engine_.counters().add(reason); }

  SendQueue sends_;

 private:
  std::error_code add_send(const SendWorkRequest& request) noexcept;
  bool check_sges(std::span<const Sge> sges, Access want) const;
  void flush_receives();

  const QpType type_;
  std::shared_ptr<ProtectionDomain> domain_;
  std::shared_ptr<CompletionQueue> send_cq_;
  std::shared_ptr<CompletionQueue> recv_cq_;
  const QueuePairCapacity capacity_;
  std::shared_ptr<SharedReceiveQueue> srq_;
  std::unique_ptr<ReceiveQueue> own_receives_;  // where there is no srq_
  ReceiveQueue& receives_;
  DoneReceives done_receives_;
  Engine& engine_;
  std::atomic<QpState> state_{QpState::reset};
  std::atomic<bool> awaits_receive_{false};
};

}  // namespace diwarp::rnic
