// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/input_set.h"

#include <algorithm>
#include <span>
#include <utility>

namespace diwarp::rnic {

namespace {

constexpr size_t kEventsPerLook = 64;

}  // namespace

InputSet::InputSet(EngineWait& wait, OnWritable on_writable)
    : wait_(wait),
      on_writable_(std::move(on_writable)),
      poller_(wait.poller()),
      events_(kEventsPerLook) {}

// --- One step.

size_t InputSet::receive(Time now) {
  size_t work = 0;
  for (llp::InputQueue* queue : queues_) work += gather(*queue, false, now);
  for (InputSource* source = busy_polled_.front(); source != nullptr;) {
    InputSource* next = busy_polled_.next(*source);
    const size_t came = source->receive(now);
    work += came;
    if (source->gathered_)
      stop_busy_polling(*source);  // it announces itself again
    else
      after_direct_poll(*source, came != 0);
    source = next;
  }
  const bool all_busy_polled = busy_polled_with_descriptor_ == with_descriptor_ &&
                               wanting_writable_ == 0 && gathered_watched_count_ == 0;
  if (all_busy_polled) return work;
  const bool often = busy_polled_count_ == 0 || wanting_writable_ != 0 || overload_.lasts();
  if (often || ++steps_since_look_ >= kStepsPerLook) work += look_at_poller(now);
  return work;
}

void InputSet::after_direct_poll(InputSource& source, bool came) {
  if (source.watched_ && ++source.watched_polls_ > kPollsUntilUnwatched) unwatch(source);
  if (came)
    source.empty_polls_ = 0;
  else if (++source.empty_polls_ > kEmptyPollsUntilPoller / busy_polled_count_ && watch(source))
    stop_busy_polling(source);
}

size_t InputSet::look_at_poller(Time now) {
  steps_since_look_ = 0;
  overload_.before_look();  // so that this look may start busy polling
  size_t work = 0;
  const size_t count = poller_.wait(events_, Duration::zero());
  for (const llp::PollEvent& event : std::span(events_).first(count)) {
    if (is_queue(event.key)) {
      work += gather(*static_cast<llp::InputQueue*>(event.key), true, now);
      continue;
    }
    auto& source = *static_cast<InputSource*>(event.key);
    if (event.writable || event.failed) {
      set_wants_writable(source, false);
      if (source.transmits_ != nullptr) on_writable_(*source.transmits_);
    }
    const bool is_busy_polled = source.linked();
    if (is_busy_polled || !(event.readable || event.failed)) continue;
    if (!overload_.lasts() && busy_polled_with_descriptor_ >= kBusyPolledSources) begin_overload();
    start_busy_polling(source);
    overload_.count(source.epoch_);
    work += receive_once(source, now);
  }
  overload_.after_look();
  return work;
}

bool InputSet::is_queue(const void* key) const {
  return std::find(queues_.begin(), queues_.end(), key) != queues_.end();
}

// --- Input that is gathered.

size_t InputSet::gather(llp::InputQueue& queue, bool told, Time now) {
  size_t work = 0;
  queue.gather(told);
  announcements_.count_gather();
  while (void* key = queue.next_ready()) {
    auto& source = *static_cast<InputSource*>(key);
    announcements_.add(source);
    tell_room(source);
    start_busy_polling(source);
    if (!source.linked() && source.reading_) work += receive_once(source, now);
  }
  return work;
}

/// What a source announced may be room.
void InputSet::tell_room(InputSource& source) {
  if (!std::exchange(source.awaits_room_, false)) return;
  if (source.transmits_ != nullptr) on_writable_(*source.transmits_);
}

/// Of a source that may find no place among those that are busy-polled: then it is watched, and
/// has to know. Where its descriptor does not tell of more that it has, it announces itself.
size_t InputSet::receive_once(InputSource& source, Time now) {
  const size_t came = source.receive(now);
  if (!source.linked() && !source.gathered_) source.set_watched(true);
  return came;
}

Duration InputSet::silence() const {
  Duration shortest = Duration::max();
  for (llp::InputQueue* queue : queues_) shortest = std::min(shortest, queue->silence());
  return shortest;
}

// --- The busy-polled set.

void InputSet::start_busy_polling(InputSource& source) {
  const bool is_busy_polled = source.linked();
  if (is_busy_polled || !source.attached_ || !source.reading_) return;
  const bool counts = !source.always_busy_polled_ && !source.gathered_;
  const bool room = !overload_.lasts() && busy_polled_with_descriptor_ < kBusyPolledSources;
  if (!room && counts && source.watched_) return;
  source.empty_polls_ = 0;
  busy_polled_.push_back(source);
  ++busy_polled_count_;
  if (counts) ++busy_polled_with_descriptor_;
}

void InputSet::stop_busy_polling(InputSource& source) {
  const bool stays = source.always_busy_polled_ && source.attached_ && source.reading_;
  if (!source.linked() || stays) return;
  busy_polled_.remove(source);
  --busy_polled_count_;
  if (!source.always_busy_polled_ && !source.gathered_) --busy_polled_with_descriptor_;
}

void InputSet::begin_overload() {
  overload_.begin();
  for (InputSource* source = busy_polled_.front(); source != nullptr;) {
    InputSource* const next = busy_polled_.next(*source);
    if (!source->gathered_ && watch(*source)) stop_busy_polling(*source);
    source = next;
  }
}

bool InputSet::is_alone(const InputSource& source) const {
  const bool only_busy_polled =
      !overload_.lasts() && busy_polled_count_ == (source.linked() ? 1 : 0);
  return only_busy_polled && !announcements_.has_other(source, kEmptyPollsUntilPoller);
}

// --- The poller.

bool InputSet::watch_until_writable(InputSource& source) {
  const llp::RoomNotice notice = source.room_notice();
  source.awaits_room_ = notice == llp::RoomNotice::announcement;
  if (notice != llp::RoomNotice::descriptor) return source.awaits_room_;
  if (!watch(source)) return false;
  set_wants_writable(source, true);
  return true;
}

void InputSet::set_wants_writable(InputSource& source, bool wanted) {
  if (source.wants_writable_ == wanted) return;
  source.wants_writable_ = wanted;
  wanting_writable_ += wanted ? 1 : size_t(-1);
  update_watch(source);
}

/// Those whose input is gathered are in the poller while they wait for something else: to be
/// writable, or, when they do not read, for the end of their connection. Where the poller has no
/// room, the engine tries again to write, and the next call to the socket finds the end.
void InputSet::update_watch(InputSource& source) {
  const bool wanted = !source.gathered_ || source.wants_writable_ || !source.reading_;
  if (!wanted) return unwatch_gathered(source);
  const bool reads = source.reading_ && !source.gathered_;
  if (watch(source)) poller_.modify(source.descriptor_, &source, reads, source.wants_writable_);
}

void InputSet::unwatch_gathered(InputSource& source) {
  if (!source.watched_) return;
  poller_.remove(source.descriptor_);
  source.watched_ = false;
  --gathered_watched_count_;
}

/// A source that is asked in every step need not be in the poller while no thread waits there.
void InputSet::unwatch(InputSource& source) {
  source.watched_polls_ = 0;
  if (wait_.any_thread() || source.wants_writable_) return;
  poller_.remove(source.descriptor_);
  source.watched_ = false;
  source.set_watched(false);
}

/// False where the system has no room for it, or it has input that its descriptor does not show:
/// then it has to stay busy-polled.
bool InputSet::watch(InputSource& source) {
  source.watched_polls_ = 0;
  if (source.descriptor_ < 0) return false;
  if (!source.set_watched(true)) {
    wait_.skip_next_wait();
    return false;
  }
  if (source.watched_) return true;
  const bool reads = source.reading_ && !source.gathered_;
  source.watched_ = poller_.try_add(source.descriptor_, &source, reads, false);
  if (source.watched_ && source.gathered_) ++gathered_watched_count_;
  return source.watched_;
}

bool InputSet::watch_all() {
  bool all_watched = true;
  for (InputSource* source = busy_polled_.front(); source != nullptr;
       source = busy_polled_.next(*source))
    if (!source->always_busy_polled_ && !source->gathered_ && !watch(*source)) all_watched = false;
  return all_watched;
}

// --- Sources come and go.

void InputSet::attach(InputSource& source, TransmitSource* transmits, int descriptor,
                      llp::InputQueue* queue) {
  if (queue != nullptr && !is_queue(queue)) {
    queues_.reserve(queues_.size() + 1);
    poller_.add(queue->descriptor(), queue);
    queues_.push_back(queue);
  }
  const bool gathered = queue != nullptr && queue->gathers_all();
  const bool watched = !gathered && descriptor >= 0;
  if (watched) poller_.add(descriptor, &source);
  source.transmits_ = transmits;
  source.gathered_ = gathered;
  source.announces_ = queue != nullptr && !gathered;
  if (source.announces_) ++announcing_;
  source.always_busy_polled_ = descriptor < 0;
  source.watched_ = watched;
  source.attached_ = true;
  source.reading_ = true;
  source.descriptor_ = descriptor;
  if (source.watched_) ++with_descriptor_;
  if (!source.watched_) start_busy_polling(source);
  if (source.gathered_) wait_.wake();
}

void InputSet::detach(InputSource& source) {
  if (!source.attached_) return;
  source.attached_ = false;
  if (source.announces_) --announcing_;
  announcements_.forget(source);
  stop_busy_polling(source);
  if (source.descriptor_ < 0) return;
  if (source.wants_writable_) --wanting_writable_;
  source.wants_writable_ = source.awaits_room_ = false;
  if (source.watched_) poller_.remove(source.descriptor_);
  if (!source.gathered_)
    --with_descriptor_;
  else if (source.watched_)
    --gathered_watched_count_;
  source.watched_ = false;
}

void InputSet::set_reading(InputSource& source, bool reading) {
  if (!source.attached_ || source.reading_ == reading) return;
  source.reading_ = reading;
  if (reading)
    start_busy_polling(source);
  else
    stop_busy_polling(source);
  if (reading && source.gathered_) wait_.wake();  // input that was announced meanwhile is not again
  update_watch(source);
}

}  // namespace diwarp::rnic
