// SPDX-License-Identifier: Apache-2.0
#include "bridge/completion_channel.h"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "bridge/completion_queue.h"
#include "bridge/device.h"
#include "bridge/refuse.h"
#include "provider/take_ready.h"

namespace diwarp::bridge {
CompletionChannel::CompletionChannel(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      channel_(device_->verbs().create_comp_channel(device_->context()),
               {device_->verbs().destroy_comp_channel}) {
  if (!channel_)
    refuse_errno(errno, "The device " + device_->name() + " has no completion channel left");
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  pushes_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
  if (!pushes_) refuse_errno(errno, "A completion channel cannot be made");
  readiness_.add(channel_->fd);
  readiness_.add(pushes_.get());
}

void CompletionChannel::add(CompletionQueue& queue) {
  const std::lock_guard lock(mutex_);
  pushed_.reserve(queues_.size() + 1);
  queues_.insert(&queue);
}

void CompletionChannel::remove(CompletionQueue& queue) {
  const std::lock_guard lock(mutex_);
  queues_.erase(&queue);
  std::erase(pushed_, &queue);
}

void CompletionChannel::push(CompletionQueue& queue) {
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(pushed_, &queue) != pushed_.end()) return;
    pushed_.push_back(&queue);
  }
  ::eventfd_write(pushes_.get(), 1);
}

std::optional<CompletionEvent> CompletionChannel::take() {
  if (const std::optional<CompletionEvent> event = take_pushed()) return event;
  return take_from_device();
}

std::optional<CompletionEvent> CompletionChannel::take_pushed() {
  eventfd_t one = 0;
  if (::eventfd_read(pushes_.get(), &one) != 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (pushed_.empty()) return std::nullopt;  // its queue has gone
  const uint64_t context = pushed_.front()->context();
  pushed_.erase(pushed_.begin());
  return CompletionEvent{context};
}

/// Events of queues that the device could not destroy, or that wait for none, are passed over.
std::optional<CompletionEvent> CompletionChannel::take_from_device() {
  std::optional<CompletionEvent> event;
  ibv_cq* cq = nullptr;
  void* owner = nullptr;
  while (!event && device_->verbs().get_cq_event(channel_.get(), &cq, &owner) == 0) {
    event = event_of(static_cast<CompletionQueue*>(owner));
    device_->verbs().ack_cq_events(cq, 1);
  }
  // A device that is gone leaves its descriptor readable.
  if (!event && device_->async_events().gone() && errno != EAGAIN) readiness_.remove(channel_->fd);
  return event;
}

/// The queue may be gone.
std::optional<CompletionEvent> CompletionChannel::event_of(CompletionQueue* queue) {
  const std::lock_guard lock(mutex_);
  if (!queues_.contains(queue) || !queue->tell()) return std::nullopt;
  return CompletionEvent{queue->context()};
}

std::optional<CompletionEvent> CompletionChannel::get_event(Duration timeout) {
  return provider::take_ready(*device_, readiness_, timeout, [this] { return take(); });
}

}  // namespace diwarp::bridge
