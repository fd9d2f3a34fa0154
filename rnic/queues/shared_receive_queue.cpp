// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/shared_receive_queue.h"

#include <mutex>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "rnic/queues/message_log.h"
#include "rnic/queues/queue_pair.h"
#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

const SharedReceiveQueueOptions& checked(const SharedReceiveQueueOptions& options) {
  check_range("max_wr", options.max_wr, 1, kMaxQueueDepth);
  check_range("max_sge", options.max_sge, 1, kMaxSge);
  check_range("limit", options.limit, 0, options.max_wr);
  return options;
}

}  // namespace

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                                       const SharedReceiveQueueOptions& options)
    : domain_(std::move(domain)),
      options_(checked(options)),
      engine_(domain_->device()->engine()),
      queue_(options.max_wr, options.max_sge, true),
      limit_(options.limit) {
  engine_.exclusively([this] { engine_.transmits().attach(*this); });
}

SharedReceiveQueue::~SharedReceiveQueue() {
  engine_.exclusively([this] { engine_.transmits().detach(*this); });
}

std::error_code SharedReceiveQueue::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                               size_t& posted) noexcept {
  std::error_code error;
  {
    const std::lock_guard lock(queue_.lock());
    error = queue_.post(requests, posted);
  }
  if (log::shows(LogLevel::trace)) [[unlikely]]
    message_log::posted({.device = domain_->device()->name()}, requests.first(posted));
  // Exchanges on both sides: either this one sees the wish, or await() sees the receive.
  if (posted != 0 && awaited_.exchange(false)) engine_.notify(*this);
  return error;
}

void SharedReceiveQueue::set_limit(uint32_t limit) {
  check_range("limit", limit, 0, options_.max_wr);
  engine_.exclusively([&] {
    limit_ = limit;
    taken();  // there may be fewer already
  });
}

SharedReceiveQueueAttributes SharedReceiveQueue::query() {
  SharedReceiveQueueAttributes attributes;
  attributes.max_wr = options_.max_wr;
  attributes.max_sge = options_.max_sge;
  engine_.exclusively([&] {
    attributes.limit = limit_;
    attributes.posted = static_cast<uint32_t>(queue_.available());
  });
  return attributes;
}

void SharedReceiveQueue::taken() {
  if (limit_ == 0 || queue_.available() >= limit_) return;
  limit_ = 0;  // guard(rows:srq-limit-told)
  domain_->device()->raise(
      {.type = AsyncEventType::srq_limit_reached, .context = options_.context});
}

void SharedReceiveQueue::given_back() {
  if (awaited_.exchange(false)) engine_.transmits().activate(*this);
}

void SharedReceiveQueue::await(ReceiveBuffers& waiter) {
  if (!waiter.linked()) waiters_.push_back(waiter);
  awaited_.exchange(true);
}

Served SharedReceiveQueue::transmit(Time) {
  // guard(rows:srq-waiters): while => if
  while (ReceiveBuffers* waiter = waiters_.pop_front())
    engine_.transmits().activate(waiter->owner());
  return {};
}

}  // namespace diwarp::rnic
