// SPDX-License-Identifier: Apache-2.0
#include "rnic/queue_pair.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>

#include "diwarp/error.h"
#include "rnic/qp_state.h"
#include "rnic/rc_queue_pair.h"
#include "rnic/ud_queue_pair.h"

namespace diwarp::rnic {

namespace {

void check_range(const char* what, uint32_t value, uint32_t lowest, uint32_t highest) {
  if (value >= lowest && value <= highest) return;
  throw Error(make_error_code(Errc::invalid_argument),
              std::string(what) + " must be from " + std::to_string(lowest) + " to " +
                  std::to_string(highest) + ", not " + std::to_string(value));
}

const QueuePairCapacity& checked(const QueuePairCapacity& capacity) {
  check_range("max_send_wr", capacity.max_send_wr, 1, kMaxQueueDepth);
  check_range("max_recv_wr", capacity.max_recv_wr, 1, kMaxQueueDepth);
  check_range("max_send_sge", capacity.max_send_sge, 1, kMaxSge);
  check_range("max_recv_sge", capacity.max_recv_sge, 1, kMaxSge);
  check_range("max_inline_data", capacity.max_inline_data, 0, kMaxInlineData);
  return capacity;
}

const std::shared_ptr<CompletionQueue>& checked(const std::shared_ptr<CompletionQueue>& cq,
                                                const Device& device) {
  if (!cq)
    throw Error(make_error_code(Errc::invalid_argument),
                "A queue pair needs a send and a receive completion queue (they may be the same)");
  if (cq->device().get() != &device)
    throw Error(make_error_code(Errc::invalid_argument),
                "The completion queue belongs to another device than the protection domain");
  return cq;
}

}  // namespace

QueuePair::QueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init)
    : sends_(checked(init.capacity), init.signal_all),
      receives_(init.capacity),
      type_(init.type),
      domain_(std::move(domain)),
      send_cq_(checked(init.send_cq.impl(), *domain_->device())),
      recv_cq_(checked(init.recv_cq.impl(), *domain_->device())),
      capacity_(init.capacity),
      engine_(domain_->device()->engine()) {
  device()->count_queue_pair(1);
}

QueuePair::~QueuePair() { device()->count_queue_pair(-1); }

std::error_code QueuePair::post_send(const SendWorkRequest& request) noexcept {
  if (const std::error_code error = check_send(request)) return error;
  {
    const std::lock_guard lock(sends_.lock());
    if (state() != QpState::rts) return Errc::invalid_state;
    if (const std::error_code error = sends_.post(request)) return error;
  }
  engine_.notify(*this);
  return {};
}

std::error_code QueuePair::post_recv(const ReceiveWorkRequest& request) noexcept {
  {
    const std::lock_guard lock(receives_.lock());
    const QpState now = state();
    if (now != QpState::init && now != QpState::rts) return Errc::invalid_state;
    if (const std::error_code error = receives_.post(request)) return error;
  }
  // Exchanges on both sides: either this one sees the wish, or await_receive() sees the receive.
  if (awaits_receive_.exchange(false)) engine_.notify(*this);
  return {};
}

bool QueuePair::await_receive() {
  awaits_receive_.exchange(true);
  return receives_.peek() != nullptr;
}

void QueuePair::modify(QpState to) {
  engine_.exclusively([&] {
    const QpState from = state();
    if (from == to && to == QpState::error) return;
    if (!transitions::allowed(type_, from, to))
      throw Error(make_error_code(Errc::invalid_state),
                  "A queue pair of type " + std::string(to_string(type_)) +
                      " cannot be moved by hand from " + std::string(to_string(from)) + " to " +
                      std::string(to_string(to)));
    if (to == QpState::error) return enter_error();
    set_state(to);
    on_state(to);
    if (to != QpState::reset) return;
    const std::scoped_lock locks(sends_.lock(), receives_.lock());
    sends_.clear();
    receives_.clear();
  });
}

void QueuePair::set_state(QpState to) {
  // Under the post locks: whoever posts has seen the old state and is done, or will see the new.
  const std::scoped_lock locks(sends_.lock(), receives_.lock());
  state_.store(to, std::memory_order_release);
}

void QueuePair::enter_error() {
  set_state(QpState::error);
  on_state(QpState::error);
  sends_.flush();
  receives_.flush(number());
  if (!report()) engine_.stall(*this);
}

bool QueuePair::report() {
  const bool sends_reported = sends_.report(*send_cq_, number());
  return receives_.report(*recv_cq_) && sends_reported;
}

bool QueuePair::may_send(const SendEntry& entry) const {
  return has_flag(entry.flags, SendFlags::inline_data) || check_sges(entry.sges, Access::none);
}

bool QueuePair::may_receive(const ReceiveEntry& entry) const {
  return check_sges(entry.sges, Access::local_write);
}

bool QueuePair::check_sges(std::span<const Sge> sges, Access want) const {
  return std::all_of(sges.begin(), sges.end(), [&](const Sge& sge) {
    if (sge.length == 0) return true;
    const ddp::Region* region = device()->regions().find(sge.lkey);
    return ddp::check_local(region, domain_->number(), want, sge) == ddp::RegionFault::none;
  });
}

QueuePairAttributes QueuePair::query() {
  QueuePairAttributes attributes;
  attributes.type = type_;
  attributes.state = state();
  attributes.number = number();
  attributes.capacity = capacity_;
  // Posters go on while this is read: it may be old, but never more than the queue holds.
  const size_t depth = std::bit_ceil(capacity_.max_send_wr);
  attributes.posted_sends = static_cast<uint32_t>(std::min(sends_.outstanding(), depth));
  attributes.posted_receives = static_cast<uint32_t>(receives_.outstanding());
  return attributes;
}

std::shared_ptr<QueuePair> make_queue_pair(std::shared_ptr<ProtectionDomain> domain,
                                           const QueuePairInit& init) {
  if (init.type == QpType::ud) return std::make_shared<UdQueuePair>(std::move(domain), init);
  return std::make_shared<RcQueuePair>(std::move(domain), init);
}

}  // namespace diwarp::rnic
