// SPDX-License-Identifier: Apache-2.0
#include "base/timer_queue.h"

#include <algorithm>

namespace diwarp {

TimerQueue::~TimerQueue() {
  for (const Entry& entry : heap_) entry.timer->position_ = Timer::kIdle;
}

void TimerQueue::add_places(size_t timers) {
  const size_t wanted = places_ + timers;
  if (wanted > heap_.capacity()) heap_.reserve(std::max(wanted, 2 * heap_.capacity()));
  places_ = wanted;
}

void TimerQueue::arm(Timer& timer, Time deadline) {
  timer.deadline_ = deadline;
  const Entry entry{deadline, &timer};
  if (timer.armed()) {
    restore(timer.position_, entry);
    return;
  }
  heap_.push_back(entry);
  sift_up(heap_.size() - 1, entry);
}

void TimerQueue::cancel(Timer& timer) {
  if (timer.armed()) remove_at(timer.position_);
}

size_t TimerQueue::fire(Time now, size_t limit) {
  size_t fired = 0;
  while (fired < limit && !heap_.empty() && heap_.front().deadline <= now) {
    Timer& timer = *heap_.front().timer;
    remove_at(0);
    ++fired;
    timer.fire_(timer, now);
  }
  return fired;
}

void TimerQueue::place(size_t position, Entry entry) {
  heap_[position] = entry;
  entry.timer->position_ = position;
}

void TimerQueue::sift_up(size_t position, Entry entry) {
  while (position > 0) {
    const size_t parent = (position - 1) / 2;
    if (heap_[parent].deadline <= entry.deadline) break;
    place(position, heap_[parent]);
    position = parent;
  }
  place(position, entry);
}

void TimerQueue::sift_down(size_t position, Entry entry) {
  for (size_t child = 2 * position + 1; child < heap_.size(); child = 2 * position + 1) {
    if (child + 1 < heap_.size() && heap_[child + 1].deadline < heap_[child].deadline) ++child;
    if (entry.deadline <= heap_[child].deadline) break;
    place(position, heap_[child]);
    position = child;
  }
  place(position, entry);
}

/// Puts `entry` where the place `position` became free, keeping the heap's order.
void TimerQueue::restore(size_t position, Entry entry) {
  if (position > 0 && entry.deadline < heap_[(position - 1) / 2].deadline) {
    sift_up(position, entry);
  } else {
    sift_down(position, entry);
  }
}

void TimerQueue::remove_at(size_t position) {
  assert(position < heap_.size());
  heap_[position].timer->position_ = Timer::kIdle;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (position < heap_.size()) restore(position, last);
}

}  // namespace diwarp
