// SPDX-License-Identifier: Apache-2.0
#include "bridge/shared_receive_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <exception>
#include <string>
#include <utility>

#include "base/log.h"
#include "bridge/refuse.h"
#include "bridge/send_translation.h"

namespace diwarp::bridge {
namespace {

uint32_t checked(const SharedReceiveQueueOptions& options, const Device& device) {
  const auto deepest = static_cast<uint32_t>(device.limits().max_srq_wr);
  const auto most_sges = static_cast<uint32_t>(device.limits().max_srq_sge);
  const bool fits = options.max_wr >= 1 && options.max_wr <= deepest && options.max_sge >= 1 &&
                    options.max_sge <= most_sges && options.limit <= options.max_wr;
  if (!fits)
    refuse(Errc::invalid_argument, "A shared receive queue of " + device.name() + " has 1 to " +
                                       std::to_string(deepest) + " receives of 1 to " +
                                       std::to_string(most_sges) +
                                       " SGEs, and a limit of no more than its receives");
  return std::min(std::bit_ceil(options.max_wr), deepest);
}

ibv_srq* create(const ProtectionDomain& domain, const SharedReceiveQueueOptions& options,
                uint32_t capacity) {
  ibv_srq_init_attr init{};
  init.attr = {.max_wr = capacity, .max_sge = options.max_sge, .srq_limit = 0};
  Device& device = domain.device();
  ibv_srq* const made = device.verbs().create_srq(domain.get(), &init);
  if (made == nullptr)
    refuse_errno(errno, "The device " + device.name() + " has no such shared receive queue");
  return made;
}

}  // namespace

std::shared_ptr<SharedReceiveQueue> SharedReceiveQueue::make(
    std::shared_ptr<ProtectionDomain> domain, const SharedReceiveQueueOptions& options) {
  std::shared_ptr<SharedReceiveQueue> made(new SharedReceiveQueue(std::move(domain), options));
  made->domain_->device().async_events().add(made->get(), made);
  made->limit_ = made->pending_limit_ = options.limit;
  return made;
}

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                                       const SharedReceiveQueueOptions& options)
    : domain_(std::move(domain)),
      options_(options),
      capacity_(checked(options, domain_->device())),
      srq_(create(*domain_, options, capacity_), {domain_->device().verbs().destroy_srq}),
      table_(capacity_, *domain_, *this),
      sges_(options.max_sge) {}

SharedReceiveQueue::~SharedReceiveQueue() { domain_->device().async_events().remove(get()); }

std::error_code SharedReceiveQueue::post_recvs(std::span<const ReceiveWorkRequest> requests,
                                               size_t& posted) noexcept {
  posted = 0;
  const std::lock_guard lock(mutex_);
  for (const ReceiveWorkRequest& request : requests) {
    if (const auto error = check_receive(request, options_.max_sge)) return error;
    uint32_t slot = 0;
    if (!table_.add(request.wr_id, slot)) return Errc::queue_full;
    ibv_recv_wr out{};
    out.sg_list = sges_.data();
    out.num_sge = translate(request.sges, *domain_, sges_);
    out.wr_id = table_.wr_id(slot);
    ibv_recv_wr* bad = nullptr;
    if (const int error = errno_of(ibv_post_srq_recv(get(), &out, &bad))) {
      table_.take_back(slot);
      return error == ENOMEM ? make_error_code(Errc::queue_full)
                             : std::error_code(error, std::system_category());
    }
    ++posted;
    if (pending_limit_ != 0) arm_pending_limit();
  }
  return {};
}

/// Where fewer are posted than a limit says when it is armed, some devices tell at once, and others
/// nothing. So the limit that the queue was made with waits here until there are as many. A device
/// that does not take it will not tell: the application is told now.
void SharedReceiveQueue::arm_pending_limit() noexcept try {
  uint32_t limit = pending_limit_;
  if (table_.posted() < limit || !pending_limit_.compare_exchange_strong(limit, 0)) return;
  if (give_limit(limit)) tell_limit();
} catch (const std::exception& error) {  // for want of memory
  log::error(std::string("An event of a shared receive queue was lost: ") + error.what());
}

/// One was taken before there were as many.
void SharedReceiveQueue::on_receive_taken() {
  if (pending_limit_.exchange(0) != 0) tell_limit();
}

void SharedReceiveQueue::set_limit(uint32_t limit) {
  if (limit > options_.max_wr)
    refuse(Errc::invalid_argument, "limit must be from 0 to " + std::to_string(options_.max_wr) +
                                       ", not " + std::to_string(limit));
  pending_limit_ = 0;
  if (table_.posted() < limit) return tell_limit();
  if (const std::error_code error = give_limit(limit))
    refuse_errno(error.value(), "The limit of a shared receive queue cannot be set");
}

/// To the device.
std::error_code SharedReceiveQueue::give_limit(uint32_t limit) noexcept {
  limit_ = limit;
  ibv_srq_attr attributes{};
  attributes.srq_limit = limit;
  const int error =
      errno_of(domain_->device().verbs().modify_srq(get(), &attributes, IBV_SRQ_LIMIT));
  return {error, std::system_category()};
}

SharedReceiveQueueAttributes SharedReceiveQueue::query() {
  return {.max_wr = options_.max_wr,
          .max_sge = options_.max_sge,
          .limit = limit_,
          .posted = table_.posted()};
}

void SharedReceiveQueue::on_async_event(ibv_event_type type, const void*) {
  if (type == IBV_EVENT_SRQ_LIMIT_REACHED) tell_limit();
}

void SharedReceiveQueue::tell_limit() {
  limit_ = 0;
  domain_->device().async_events().raise(
      {.type = AsyncEventType::srq_limit_reached, .context = options_.context});
}

}  // namespace diwarp::bridge
