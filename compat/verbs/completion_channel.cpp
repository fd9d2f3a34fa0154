// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/completion_channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>

#include "compat/common/boundary.h"
#include "compat/common/event_descriptor.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/verbs/completion_queue.h"

namespace diwarp::compat {
namespace {

/// How long a thread that waits for an event serves the device before it sleeps.
constexpr Duration kDrive = std::chrono::microseconds(50);

}  // namespace

CompletionChannel::CompletionChannel(Context& opened)
    : ibv_comp_channel{},
      of_context_(&opened.users),
      engine_(opened.engine()),
      channel_(engine_.device()) {
  context = opened.handle();
  fd = channel_.descriptor();
  // Programs expect a descriptor that waits, until they say otherwise.
  const int flags = ::fcntl(fd, F_GETFL);
  refuse_by_errno_if(flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0);
  engine_.long_waits().add(*this);
}

CompletionChannel::~CompletionChannel() { engine_.long_waits().remove(*this); }

uint64_t CompletionChannel::add(Cq& cq) {
  const std::lock_guard lock(mutex_);
  queues_[++last_] = &cq;
  ++refcnt;
  return last_;
}

void CompletionChannel::remove(uint64_t number) {
  const std::lock_guard lock(mutex_);
  queues_.erase(number);
  --refcnt;
}

/// Counted under the lock: remove() waits until that is done.
Cq* CompletionChannel::fetched(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(number);
  if (found == queues_.end()) return nullptr;
  found->second->count_fetched_event();
  return found->second;
}

Cq* CompletionChannel::take_raised() {
  const std::optional<CompletionEvent> event = channel_.get_event(Duration::zero());
  return event ? fetched(event->context) : nullptr;
}

/// A queue that is armed, if there were news; null otherwise.
Cq* CompletionChannel::take_armed() {
  if (!news_.exchange(false)) return nullptr;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, cq] : queues_) {
    if (!cq->armed()) continue;
    cq->count_fetched_event();
    return cq;
  }
  return nullptr;
}

/// To sleep and be woken costs two changes of thread, the RNIC thread's and this one's. So this
/// thread serves the device itself for a moment; what comes meanwhile is taken without them.
Cq* CompletionChannel::drive() {
  const auto end = std::chrono::steady_clock::now() + kDrive;
  while (std::chrono::steady_clock::now() < end)
    if (engine_.serve() != 0)
      if (Cq* const cq = take_raised()) return cq;
  return nullptr;
}

/// The descriptor has a token for each event, and perhaps some too many.
void CompletionChannel::put_token() {
  const uint64_t token = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &token, sizeof token);
}

void CompletionChannel::on_news() {
  news_ = true;
  put_token();
}

/// Reading is what the system restarts after a signal, or does not, as the program has asked. The
/// library takes a token with each event, so it gets this one back.
void CompletionChannel::wait() {
  const Wait waiting(*this);
  engine_.long_waits().watch();
  uint64_t token = 0;
  refuse_by_errno_if(::read(fd, &token, sizeof token) < 0);
  put_token();
}

Cq& CompletionChannel::take_event() {
  for (;;) {
    if (Cq* const cq = take_raised()) return *cq;
    if (Cq* const cq = take_armed()) return *cq;
    if (may_wait(fd))
      if (Cq* const cq = drive()) return *cq;
    wait();
  }
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return or_null([&]() -> ibv_comp_channel* {
    auto* const made = new CompletionChannel(context_of(context));
    LiveObjects<CompletionChannel>::add(made);
    return made;
  });
}

DIWARP_COMPAT_EXPORT int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return errno_value([&] {
    auto* const given = static_cast<CompletionChannel*>(channel);
    LiveObjects<CompletionChannel>::take_unused(given);
    delete given;
  });
}

DIWARP_COMPAT_EXPORT int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq,
                                          void** cq_context) {
  return minus_one([&] {
    ibv_cq* const told = static_cast<CompletionChannel*>(channel)->take_event().handle();
    *cq = told;
    *cq_context = told->cq_context;
  });
}

}  // extern "C"
