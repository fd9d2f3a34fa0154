// SPDX-License-Identifier: Apache-2.0
#include "hybrid/shared_receive_queue.h"

#include <new>
#include <string>
#include <utility>

#include "diwarp/error.h"
#include "hybrid/protection_domain.h"
#include "provider/own.h"

namespace diwarp::hybrid {
namespace {

bool hardware_has_some(const ProtectionDomain& domain) {
  const provider::Device& hardware = *domain.device()->halves().hardware;
  return has(hardware.query().capabilities, Capability::shared_receive_queues);
}

}  // namespace

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                                       const SharedReceiveQueueOptions& options)
    : domain_(std::move(domain)), options_(options) {
  const Halves<provider::ProtectionDomain>& domains = domain_->halves();
  halves_.software = domains.software->make_shared_receive_queue(options);
  if (hardware_has_some(*domain_))
    halves_.hardware = domains.hardware->make_shared_receive_queue(options);
}

std::error_code SharedReceiveQueue::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                               size_t& posted) noexcept {
  posted = 0;
  const std::lock_guard lock(mutex_);
  if (half_ && waiting_.empty()) return halves_.of(*half_)->post_recvs(requests, posted);
  for (const ReceiveWorkRequest& request : requests) {
    if (const std::error_code error = keep(request)) return error;
    ++posted;
  }
  return {};
}

std::error_code SharedReceiveQueue::keep(const ReceiveWorkRequest& request) {
  if (waiting_.size() == options_.max_wr) return Errc::queue_full;
  if (request.sges.size() > options_.max_sge) return Errc::too_many_sges;
  try {
    waiting_.push_back({request.wr_id, {request.sges.begin(), request.sges.end()}});
  } catch (const std::bad_alloc&) {
    return std::make_error_code(std::errc::not_enough_memory);
  }
  return {};
}

void SharedReceiveQueue::check_free_for(Half wanted) const {
  if (half_.value_or(wanted) != wanted)
    throw Error(make_error_code(Errc::invalid_argument),
                "A shared receive queue of a hybrid device serves reliable connections or "
                "datagrams, and this one serves the others already: make one for each");
}

std::shared_ptr<provider::SharedReceiveQueue> SharedReceiveQueue::half(Half wanted) {
  const std::lock_guard lock(mutex_);
  check_free_for(wanted);
  const std::shared_ptr<provider::SharedReceiveQueue>& queue = halves_.of(wanted);
  if (!queue)
    throw Error(make_error_code(Errc::unsupported_operation),
                "The hardware device has no shared receive queues");
  return queue;
}

void SharedReceiveQueue::decide(Half half) {
  const std::lock_guard lock(mutex_);
  check_free_for(half);
  half_ = half;
  hand_over();
}

/// Where the half refuses a receive, that and the later ones wait on.
void SharedReceiveQueue::hand_over() {
  provider::SharedReceiveQueue& queue = *halves_.of(*half_);
  while (!waiting_.empty()) {
    const ReceiveWorkRequest request{waiting_.front().wr_id, waiting_.front().sges};
    size_t posted = 0;
    if (const std::error_code error = queue.post_recvs({&request, 1}, posted))
      throw Error(error, "A receive that was posted before cannot be posted");
    waiting_.pop_front();
  }
  if (limit_) queue.set_limit(*limit_);
  limit_.reset();
}

void SharedReceiveQueue::set_limit(uint32_t limit) {
  if (limit > options_.max_wr)
    throw Error(make_error_code(Errc::invalid_argument), "limit must be from 0 to " +
                                                             std::to_string(options_.max_wr) +
                                                             ", not " + std::to_string(limit));
  const std::lock_guard lock(mutex_);
  if (half_ && waiting_.empty()) return halves_.of(*half_)->set_limit(limit);
  limit_ = limit;
}

SharedReceiveQueueAttributes SharedReceiveQueue::query() {
  const std::lock_guard lock(mutex_);
  SharedReceiveQueueAttributes attributes = halves_.of(half_.value_or(Half::software))->query();
  attributes.posted += static_cast<uint32_t>(waiting_.size());
  if (!half_) attributes.limit = options_.limit;
  if (limit_) attributes.limit = *limit_;
  return attributes;
}

}  // namespace diwarp::hybrid
