// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/queue_pair.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <string>

#include "diwarp/error.h"
#include "provider/own.h"
#include "rnic/engine/attach.h"
#include "rnic/queues/message_log.h"
#include "rnic/queues/qp_state.h"

namespace diwarp::rnic {

void check_range(const char* what, uint32_t value, uint32_t lowest, uint32_t highest) {
  if (value >= lowest && value <= highest) return;
  throw Error(make_error_code(Errc::invalid_argument),
              std::string(what) + " must be from " + std::to_string(lowest) + " to " +
                  std::to_string(highest) + ", not " + std::to_string(value));
}

namespace {

/// Timers of one queue pair that may be armed at once. (RD peers have their own.) Of RC: the wait
/// for a receive, the watch on the peer, idle memory.
constexpr size_t timers_of(QpType type) { return type == QpType::rc ? 3 : 2; }

const QueuePairCapacity& checked(const QueuePairCapacity& capacity) {
  check_range("max_send_wr", capacity.max_send_wr, 1, kMaxQueueDepth);
  check_range("max_recv_wr", capacity.max_recv_wr, 1, kMaxQueueDepth);
  check_range("max_send_sge", capacity.max_send_sge, 1, kMaxSge);
  check_range("max_recv_sge", capacity.max_recv_sge, 1, kMaxSge);
  check_range("max_inline_data", capacity.max_inline_data, 0, kMaxInlineData);
  return capacity;
}

CompletionOrder order_of_sends(const provider::QueuePairInit& init) {
  return init.type == QpType::rd ? init.reliable.completion_order : CompletionOrder::posting;
}

std::shared_ptr<CompletionQueue> checked(const std::shared_ptr<provider::CompletionQueue>& named,
                                         const DeviceContext& device) {
  const auto cq = provider::own_pointer<CompletionQueue>(named, "completion queue");
  if (!cq)
    throw Error(make_error_code(Errc::invalid_argument),
                "A queue pair needs a send and a receive completion queue (they may be the same)");
  if (cq->device().get() != &device)
    throw Error(
        make_error_code(Errc::invalid_argument),
        "The completion queue belongs to another device than the protection domain: make both of "
        "one Device");
  return cq;
}

std::shared_ptr<SharedReceiveQueue> checked(
    const std::shared_ptr<provider::SharedReceiveQueue>& named, const ProtectionDomain& domain) {
  const auto srq = provider::own_pointer<SharedReceiveQueue>(named, "shared receive queue");
  if (srq && srq->domain().get() != &domain)  // guard(rows:srq-domain): condition => false
    provider::refuse_other_domain();
  return srq;
}

}  // namespace

QueuePair::QueuePair(std::shared_ptr<ProtectionDomain> domain, const provider::QueuePairInit& init)
    : sends_(checked(init.capacity), init.signal_all, order_of_sends(init)),
      type_(init.type),
      domain_(std::move(domain)),
      send_cq_(checked(init.send_cq, *domain_->device())),
      recv_cq_(checked(init.recv_cq, *domain_->device())),
      capacity_(init.capacity),
      receives_(*this, init.capacity, checked(init.srq, *domain_)),
      protection_(domain_->device()->regions(), domain_->number()),
      engine_(domain_->device()->engine()),
      logged_(engine_.counters(), domain_->device()->counter_log()) {
  sends_.set_log(logged_);
  engine_.exclusively([this] { engine_.timers().add_places(timers_of(type_)); });
  device()->counters().add_shared(Meter::queue_pairs);
}

QueuePair::~QueuePair() {
  engine_.exclusively([this] { engine_.timers().remove_places(timers_of(type_)); });
  device()->counters().subtract_shared(Meter::queue_pairs);
}

void QueuePair::set_number(uint32_t number) {
  protection_.set_queue_pair(number);
  logged_.set_queue_pair(number);
}

/// The engine is told once, when all are there: they go out together.
std::error_code QueuePair::post_sends(std::span<const SendWorkRequest> requests,
                                      size_t& posted) noexcept {
  std::error_code error;
  posted = 0;
  {
    const std::lock_guard lock(sends_.lock());
    while (posted < requests.size() && !(error = add_send(requests[posted]))) ++posted;
  }
  if (log::shows(LogLevel::trace)) [[unlikely]]
    message_log::posted(subject(), requests.first(posted));
  if (posted != 0) engine_.notify(*this);
  return error;
}

std::error_code QueuePair::post_all_sends(std::span<const SendWorkRequest> requests) noexcept {
  {
    const std::lock_guard lock(sends_.lock());
    const QpState now = state();
    if (!may_post_sends(now) && !is_ending(now)) return Errc::invalid_state;
    for (const SendWorkRequest& request : requests)
      if (const std::error_code error = check_send(request)) return error;
    if (const std::error_code error = sends_.post_all(requests, !may_post_sends(now))) return error;
  }
  if (log::shows(LogLevel::trace)) [[unlikely]]
    message_log::posted(subject(), requests);
  if (!requests.empty()) engine_.notify(*this);
  return {};
}

/// Under the post lock.
std::error_code QueuePair::add_send(const SendWorkRequest& request) noexcept {
  if (const std::error_code error = check_send(request)) return error;
  const QpState now = state();
  if (!may_post_sends(now)) [[unlikely]]  // guard(posting): condition => false
    return is_ending(now) ? sends_.post_withheld(request) : Errc::invalid_state;
  return sends_.post(request);
}

/// The same of receives, in a state in which none can be taken. The engine is told: in error they
/// are flushed at once.
std::error_code QueuePair::withhold_recvs(std::span<const ReceiveWorkRequest> requests,
                                          size_t& posted) noexcept {
  if (!is_ending(state())) return Errc::invalid_state;
  receives_.set_wish();
  return receives_.queue().post_withheld(requests, posted);
}

[[gnu::always_inline]] inline std::error_code QueuePair::add_recvs(
    std::span<const ReceiveWorkRequest> requests, size_t& posted) noexcept {
  posted = 0;
  if (receives_.is_shared()) return Errc::unsupported_operation;  // guard(srq)
  std::error_code error;
  {
    const std::lock_guard lock(receives_.queue().lock());
    const QpState now = state();
    // guard(posting): condition => false
    if (now == QpState::reset || is_ending(now)) [[unlikely]]
      error = withhold_recvs(requests, posted);
    else
      error = receives_.queue().post(requests, posted);
  }
  if (posted != 0 && receives_.take_wish()) engine_.notify(*this);
  return error;
}

// The line comes after the call, apart from calls without one, which would save registers for it.
std::error_code QueuePair::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                      size_t& posted) noexcept {
  if (log::shows(LogLevel::trace)) [[unlikely]]
    return trace_recvs(requests, posted);
  return add_recvs(requests, posted);
}

std::error_code QueuePair::trace_recvs(std::span<const ReceiveWorkRequest> requests,
                                       size_t& posted) noexcept {
  const std::error_code error = add_recvs(requests, posted);
  message_log::posted(subject(), requests.first(posted));
  return error;
}

void QueuePair::raise(AsyncEventType type, std::optional<TerminateInfo> terminate,
                      std::error_code status) {
  device()->raise(
      {.type = type, .qp_number = number(), .terminate = std::move(terminate), .status = status});
}

void QueuePair::set_remote_access(Access accesses) {
  engine_.exclusively([&] { protection_.set_remote_access(accesses); });
}

void QueuePair::modify(QpState to) {
  engine_.exclusively([&] {
    const QpState from = state();
    if (from == to && to == QpState::error) return;
    if (!transitions::allowed(type_, from, to))  // guard(posting): condition => false
      throw Error(make_error_code(Errc::invalid_state),
                  "A queue pair of type " + std::string(to_string(type_)) +
                      " cannot be moved by hand from " + std::string(to_string(from)) + " to " +
                      std::string(to_string(to)));
    if (to == QpState::error) return enter_error();
    set_state(to);
    on_state(to);
    if (to != QpState::reset) return;
    const std::scoped_lock locks(sends_.lock(), receives_.queue().lock());
    sends_.clear();
    receives_.clear();
  });
}

void QueuePair::set_state(QpState to) {
  // Under the post locks: a post has seen the old state and is done, or will see the new.
  const std::scoped_lock locks(sends_.lock(), receives_.queue().lock());
  state_.store(to, std::memory_order_release);
}

void QueuePair::enter_error() {
  set_state(QpState::error);
  on_state(QpState::error);
  // guard(rows:flush-on-end)
  flush();
  if (!report()) engine_.transmits().stall(*this);
  if (receives_.is_shared()) raise(AsyncEventType::last_wqe_reached);
}

void QueuePair::flush() {
  sends_.flush();
  receives_.flush();
}

void QueuePair::flush_withheld() {
  if (state() == QpState::error) flush();  // guard(posting)
}

void QueuePair::retire() {
  detach_endpoint(engine_, *this);
  receives_.retire();
}

bool QueuePair::report() {
  const bool sends_reported = report_sends();
  return report_receives(receives_.completed()) && sends_reported;
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
  attributes.posted_receives = static_cast<uint32_t>(receives_.queue().outstanding());
  return attributes;
}

}  // namespace diwarp::rnic
