// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/completion_channel.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/verbs/completion_queue.h"

namespace diwarp::compat {
namespace {

/// How long a wait lasts before it is asked whether something came that gave no event, the first
/// time and at most.
constexpr Duration kFirstLook = std::chrono::milliseconds(20);
constexpr Duration kLongestLook = std::chrono::milliseconds(320);

}  // namespace

CompletionChannel::CompletionChannel(Context& opened)
    : ibv_comp_channel{},
      of_context_(&opened.users),
      device_(opened.engine().device()),
      channel_(device_) {
  context = opened.handle();
  fd = channel_.descriptor();
  // Programs expect a descriptor that waits, until they say otherwise.
  const int flags = ::fcntl(fd, F_GETFL);
  refuse_by_errno_if(flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0);
}

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

bool CompletionChannel::may_wait() const {
  const int flags = ::fcntl(fd, F_GETFL);
  refuse_by_errno_if(flags < 0);
  return (flags & O_NONBLOCK) == 0;
}

/// Counted under the lock: remove() waits until that is done.
Cq* CompletionChannel::fetched(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(number);
  if (found == queues_.end()) return nullptr;
  found->second->count_fetched_event();
  return found->second;
}

Cq* CompletionChannel::armed_with_news() {
  const uint64_t received = device_.counter("rc_rx_bytes");
  const std::lock_guard lock(mutex_);
  if (std::exchange(received_, received) == received) return nullptr;
  for (const auto& [number, cq] : queues_) {
    if (!cq->armed()) continue;
    cq->count_fetched_event();
    return cq;
  }
  return nullptr;
}

Cq& CompletionChannel::take_event() {
  for (Duration patience = kFirstLook;;) {
    const bool wait = may_wait();
    const std::optional<CompletionEvent> event =
        channel_.get_event(wait ? patience : Duration::zero());
    refuse_if(!event && !wait, EAGAIN);
    if (Cq* const cq = event ? fetched(event->context) : armed_with_news()) return *cq;
    if (!event) patience = std::min(2 * patience, kLongestLook);
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
