// SPDX-License-Identifier: Apache-2.0
#include "hybrid/completion_queue.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "diwarp/error.h"
#include "hybrid/device.h"
#include "provider/own.h"
#include "provider/timed_poll.h"

namespace diwarp::hybrid {
namespace {

/// A step of the hardware half asks the kernel.
constexpr unsigned kPollsPerStep = 64;

/// The queues' own channel where the application gives none.
std::shared_ptr<CompletionChannel> channel_or_own(const std::shared_ptr<Device>& device,
                                                  std::shared_ptr<CompletionChannel> channel) {
  if (!channel) return std::make_shared<CompletionChannel>(device);
  if (channel->device() != device) provider::refuse_foreign("completion channel");
  return channel;
}

}  // namespace

CompletionQueue::CompletionQueue(std::shared_ptr<Device> device, uint32_t entries,
                                 std::shared_ptr<CompletionChannel> channel, uint64_t context)
    : device_(std::move(device)),
      has_own_channel_(channel == nullptr),
      channel_(channel_or_own(device_, std::move(channel))),
      arming_(std::make_shared<Arming>(context)),
      key_(channel_->add(arming_)) {
  const auto make = [&](Half half) {
    return device_->halves().of(half)->make_completion_queue(entries, channel_->halves().of(half),
                                                             key_);
  };
  try {
    halves_ = {.software = make(Half::software), .hardware = make(Half::hardware)};
  } catch (...) {
    channel_->remove(key_);
    throw;
  }
}

CompletionQueue::~CompletionQueue() { channel_->remove(key_); }

const std::shared_ptr<provider::CompletionQueue>& CompletionQueue::use(Half half) {
  (half == Half::software ? software_used_ : hardware_used_) = true;
  return halves_.of(half);
}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions) {
  const size_t count = poll_used(completions);
  if (count != 0) arming_->polled();
  if (device_->manual()) serve_unused(count == 0);
  return count;
}

/// The half that no queue pair of this queue's uses, as a poll of its own would.
void CompletionQueue::serve_unused(bool idle) {
  const bool now_and_then = ++polls_ % kPollsPerStep == 0;
  const Halves<provider::Device>& halves = device_->halves();
  if (!software_used_ && (idle || now_and_then)) halves.software->progress();
  if (!hardware_used_ && now_and_then) halves.hardware->progress();
}

/// A half that no queue pair uses costs nothing.
size_t CompletionQueue::poll_used(std::span<WorkCompletion> completions) {
  if (!software_used_) return halves_.hardware->poll(completions);
  if (!hardware_used_) return halves_.software->poll(completions);
  const bool hardware_first = turn_.fetch_add(1, std::memory_order_relaxed) % 2 == 0;
  const Half first = hardware_first ? Half::hardware : Half::software;
  const Half second = hardware_first ? Half::software : Half::hardware;
  const size_t count = halves_.of(first)->poll(completions);
  if (count == completions.size()) return count;
  return count + halves_.of(second)->poll(completions.subspan(count));
}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions, Duration timeout) {
  return provider::timed_poll(
      timeout, sleepers_, [&] { return poll(completions); },
      [&](Duration limit) { return sleep(completions, limit); },
      [&] {
        if (has_own_channel_) channel_->wake();
      });
}

/// Until something may have come. Returns what came before it slept.
size_t CompletionQueue::sleep(std::span<WorkCompletion> completions, Duration limit) {
  if (!has_own_channel_) {
    std::this_thread::sleep_for(std::min(device_->before_wait(limit), provider::kNap));
    return 0;
  }
  arming_->arm();
  try {
    arm_halves(false);
  } catch (const Error&) {  // without events the queue is looked at now and then
    limit = std::min(limit, provider::kNap);
  }
  if (const size_t count = poll(completions)) return count;
  static_cast<void>(channel_->get_event(limit));
  return 0;
}

void CompletionQueue::arm(bool solicited_only) {
  if (has_own_channel_) return;  // nobody to tell
  arming_->arm();
  arm_halves(solicited_only);
}

void CompletionQueue::arm_halves(bool solicited_only) {
  halves_.software->arm(solicited_only);  // which goes on where the hardware is gone
  halves_.hardware->arm(solicited_only);
}

}  // namespace diwarp::hybrid
