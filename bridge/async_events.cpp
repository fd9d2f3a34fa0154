// SPDX-License-Identifier: Apache-2.0
#include "bridge/async_events.h"

#include <fcntl.h>

#include <cerrno>
#include <string>

#include "base/log.h"
#include "bridge/event_queue.h"

namespace diwarp::bridge {
namespace {

/// The object that an event is about; null: the device or its port.
void* object_of(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return event.element.qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return event.element.srq;
    default:
      return nullptr;
  }
}

}  // namespace

AsyncEvents::AsyncEvents(const RdmaCore& core, ibv_context* context)
    : core_(core), context_(context) {
  ::fcntl(context->async_fd, F_SETFL, ::fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
}

void AsyncEvents::add(EventQueue& queue) {
  const std::lock_guard lock(mutex_);
  queues_.push_back(&queue);
}

void AsyncEvents::remove(EventQueue& queue) {
  const std::lock_guard lock(mutex_);
  std::erase(queues_, &queue);
}

void AsyncEvents::raise(const AsyncEvent& event) {
  const std::lock_guard lock(mutex_);
  for (EventQueue* const queue : queues_) queue->raise(event);
}

void AsyncEvents::add(void* object, const std::weak_ptr<AsyncSubject>& subject) {
  const std::lock_guard lock(mutex_);
  subjects_[object] = subject;
}

void AsyncEvents::remove(void* object) {
  const std::lock_guard lock(mutex_);
  subjects_.erase(object);
}

void AsyncEvents::tell_all(ibv_event_type type) {
  std::vector<std::shared_ptr<AsyncSubject>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [object, known] : subjects_)
      if (auto subject = known.lock()) all.push_back(std::move(subject));
  }
  for (const auto& subject : all) subject->on_async_event(type, nullptr);
}

std::shared_ptr<AsyncSubject> AsyncEvents::subject_of(const ibv_async_event& event) {
  const std::lock_guard lock(mutex_);
  const auto found = subjects_.find(object_of(event));
  return found == subjects_.end() ? nullptr : found->second.lock();
}

bool AsyncEvents::step() {
  ibv_async_event event{};
  if (core_.verbs().get_async_event(context_, &event) != 0) {
    if (gone() && errno != EAGAIN) closed_ = true;  // its descriptor stays readable
    return false;
  }
  // The object cannot be destroyed before the event is acknowledged.
  const std::shared_ptr<AsyncSubject> subject = subject_of(event);
  const bool of_device = object_of(event) == nullptr;
  core_.verbs().ack_async_event(&event);
  if (subject) subject->on_async_event(event.event_type, object_of(event));
  if (of_device) tell_device_event(event.event_type);
  return true;
}

void AsyncEvents::tell_device_event(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
      gone_ = true;
      raise({.type = AsyncEventType::device_fatal});
      return tell_all(type);
    case IBV_EVENT_PORT_ACTIVE:
      return raise({.type = AsyncEventType::port_active});
    case IBV_EVENT_PORT_ERR:
      return raise({.type = AsyncEventType::port_error});
    case IBV_EVENT_CQ_ERR:
      return log::error(std::string("A completion queue of ") + context_->device->name +
                        " failed: its completions are lost");
    default:
      return;
  }
}

}  // namespace diwarp::bridge
