// SPDX-License-Identifier: Apache-2.0
#include "diwarp/completion_queue.h"

#include "provider/completion_queue.h"
#include "provider/device.h"
#include "verbs/handle_access.h"

namespace diwarp {

CompletionChannel::CompletionChannel(const Device& device)
    : impl_(impl_of(device)->make_completion_channel()) {}

std::optional<CompletionEvent> CompletionChannel::get_event(Duration timeout) {
  return impl_->get_event(timeout);
}

int CompletionChannel::descriptor() const { return impl_->descriptor(); }

CompletionQueue::CompletionQueue(const Device& device, uint32_t entries)
    : impl_(impl_of(device)->make_completion_queue(entries, nullptr, 0)) {}

CompletionQueue::CompletionQueue(const Device& device, uint32_t entries,
                                 const CompletionChannel& channel, uint64_t context)
    : impl_(impl_of(device)->make_completion_queue(entries, impl_of(channel), context)) {}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions) {
  return impl_->poll(completions);
}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions, Duration timeout) {
  return impl_->poll(completions, timeout);
}

std::optional<WorkCompletion> CompletionQueue::wait(Duration timeout) {
  WorkCompletion completion;
  if (poll({&completion, 1}, timeout) == 0) return std::nullopt;
  return completion;
}

WorkCompletion CompletionQueue::wait() { return *wait(Duration(-1)); }

void CompletionQueue::arm(bool solicited_only) { impl_->arm(solicited_only); }

uint32_t CompletionQueue::entries() const { return impl_->entries(); }

}  // namespace diwarp
