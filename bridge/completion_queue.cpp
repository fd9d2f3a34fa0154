// SPDX-License-Identifier: Apache-2.0
#include "bridge/completion_queue.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "bridge/device.h"
#include "bridge/refuse.h"
#include "provider/own.h"
#include "provider/timed_poll.h"

namespace diwarp::bridge {
namespace {

constexpr size_t kBatch = 16;
/// A thread that polls alone has nobody else to serve the device's events.
constexpr unsigned kPollsPerStep = 64;

uint32_t checked(uint32_t entries) {
  if (entries == 0 || entries > CompletionQueue::kMostEntries)
    refuse(Errc::invalid_argument, "A completion queue has 1 to 1,048,576 entries");
  return entries;
}

std::shared_ptr<CompletionChannel> checked(const Device& device,
                                           std::shared_ptr<CompletionChannel> channel) {
  if (channel && channel->device() != &device) provider::refuse_foreign("completion channel");
  return channel;
}

}  // namespace

CompletionQueue::CompletionQueue(std::shared_ptr<Device> device, uint32_t entries,
                                 std::shared_ptr<CompletionChannel> channel, uint64_t context)
    : device_(std::move(device)),
      entries_(checked(entries)),
      channel_(checked(*device_, std::move(channel))),
      own_channel_(channel_ ? nullptr : std::make_unique<CompletionChannel>(device_)),
      context_(context) {
  const auto most = static_cast<uint32_t>(device_->limits().max_cqe);
  room_ = std::min(std::max(entries, kCompletionRoom), most);
  ibv_cq* const cq = device_->verbs().create_cq(device_->context(), static_cast<int>(room_), this,
                                                events().get(), 0);
  if (cq == nullptr)
    refuse_errno(errno, "The device " + device_->name() + " has no completion queue for " +
                            std::to_string(room_) + " completions");
  cq_ = Owned<ibv_cq>(cq, {device_->verbs().destroy_cq});
  events().add(*this);
}

CompletionQueue::~CompletionQueue() { events().remove(*this); }

// --- Queue pairs.

void CompletionQueue::reserve(uint32_t places) {
  const std::lock_guard lock(mutex_);
  make_room(places, 0);
  reserved_ += places;
}

/// Throws Error(no_resources). With the mutex.
void CompletionQueue::make_room(uint32_t places, uint32_t replaced) {
  if (places > room_ - reserved_)
    refuse(Errc::no_resources, "The completion queue has no room for " + std::to_string(places) +
                                   " more completions: its queue pairs may have " +
                                   std::to_string(reserved_) + " of " + std::to_string(room_) +
                                   ". Make it larger, or use another one as well");
  waiting_.reserve(size_t{reserved_} + places + replaced);
}

void CompletionQueue::unreserve(uint32_t places) {
  const std::lock_guard lock(mutex_);
  reserved_ -= places;
}

void CompletionQueue::attach(WorkTable& table, uint32_t places, uint32_t replaced) {
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(table.number());
  if (found != tables_.end()) {
    ++found->second.uses;
    return;
  }
  make_room(places, replaced);
  tables_.emplace(table.number(), Attached{.table = &table, .uses = 1, .places = places});
  reserved_ += places;
}

void CompletionQueue::detach(const WorkTable& table, bool keeps) {
  const std::lock_guard lock(mutex_);
  const auto found = tables_.find(table.number());
  if (found == tables_.end() || --found->second.uses != 0) return;
  reserved_ -= found->second.places;
  tables_.erase(found);
  recent_tables_ = {};
  waiting_.forget(table, keeps, entries_);
}

WorkTable* CompletionQueue::table_of(uint64_t wr_id) {
  const uint32_t number = WorkTable::number_in(wr_id);
  WorkTable*& recent = recent_tables_[number % recent_tables_.size()];
  if (recent != nullptr && recent->number() == number) return recent;
  const auto found = tables_.find(number);
  if (found == tables_.end()) return nullptr;
  return recent = found->second.table;
}

// --- Polling.

size_t CompletionQueue::poll(std::span<WorkCompletion> completions) {
  const size_t count = poll_once(completions);
  if (device_->manual() && ++polls_ % kPollsPerStep == 0) device_->step();
  return count;
}

size_t CompletionQueue::poll_once(std::span<WorkCompletion> completions) {
  const std::lock_guard lock(mutex_);
  const size_t waited = waiting_.empty() ? 0 : waiting_.take(completions);
  CompletionSink sink(completions.subspan(waited), waiting_);
  const auto room = [&sink] { return sink.left(); };
  while (fetch_all(sink, room) && sink.count() + waited == 0 && arm_again()) {
  }
  const size_t count = waited + sink.count();
  if (count != 0) arming_.polled();
  return count;
}

/// Takes completions from the device, at most room() at a time. False where it has none.
template <class Room>
bool CompletionQueue::fetch_all(CompletionSink& sink, Room room) {
  bool some = false;
  while (const size_t wanted = std::min<size_t>(room(), kBatch)) {
    const size_t fetched = fetch(sink, wanted);
    some = some || fetched != 0;
    if (fetched < wanted) break;
  }
  return some;
}

/// Returns how many there were, at most `most`, which is at most kBatch.
size_t CompletionQueue::fetch(CompletionSink& sink, size_t most) {
  std::array<ibv_wc, kBatch> batch;
  const int polled = ibv_poll_cq(get(), static_cast<int>(most), batch.data());
  for (int i = 0; i < polled; ++i) deliver(batch[static_cast<size_t>(i)], sink);
  return polled < 0 ? 0 : static_cast<size_t>(polled);
}

/// Completions that are not shown have used up the device's arming, and the application still waits
/// for one that is. False where it does not. The queue must be looked at once more.
bool CompletionQueue::arm_again() {
  return channel_ && arming_.outstanding() && request_event() == 0;
}

void CompletionQueue::deliver(const ibv_wc& wc, CompletionSink& sink) {
  WorkTable* const table = table_of(wc.wr_id);
  if (table == nullptr) return;
  const size_t before = sink.count();
  table->complete(wc, WorkTable::slot_in(wc.wr_id), sink);
  if (sink.count() != before) table->release(sink.last_slot());
}

/// The application, which has not asked, is told of what it gets.
void CompletionQueue::reap() {
  const std::lock_guard lock(mutex_);
  CompletionSink sink({}, waiting_);
  while (fetch_all(sink, [] { return kBatch; }) && sink.shown() == 0 && arm_again()) {
  }
  if (sink.shown() != 0 && channel_ && arming_.tell()) events().push(*this);
}

void CompletionQueue::flush(const WorkTable& table) {
  reap();
  {
    const std::lock_guard lock(mutex_);
    CompletionSink sink({}, waiting_);
    ibv_wc wc{};
    wc.status = IBV_WC_WR_FLUSH_ERR;
    for (const uint32_t slot : table.outstanding()) {
      wc.wr_id = table.wr_id(slot);
      deliver(wc, sink);
    }
    if (waiting_.empty()) return;
  }
  tell_waiting();
}

void CompletionQueue::finish_completed(WorkTable& table) {
  {
    const std::lock_guard lock(mutex_);
    CompletionSink sink({}, waiting_);
    table.finish_completed(sink);
    if (sink.shown() == 0) return;
  }
  tell_waiting();
}

/// Something waits that the device has not told of.
void CompletionQueue::tell_waiting() {
  if (channel_ ? arming_.tell() : sleepers_ != 0) events().push(*this);
}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions, Duration timeout) {
  return provider::timed_poll(
      timeout, sleepers_, [&] { return poll(completions); },
      [&](Duration limit) {
        sleep(limit);
        return size_t{0};
      },
      [&] {
        if (own_channel_) own_channel_->push(*this);
      });
}

/// Until something may have come.
void CompletionQueue::sleep(Duration limit) {
  limit = device_->before_wait(limit);
  if (!own_channel_) {
    std::this_thread::sleep_for(std::min(limit, provider::kNap));
    return;
  }
  // Without an event of the device's the queue is looked at now and then.
  if (ibv_req_notify_cq(get(), 0) != 0) limit = std::min(limit, provider::kNap);
  {
    // What came before the request gives no event.
    reap();
    const std::lock_guard lock(mutex_);
    if (!waiting_.empty()) return;
  }
  static_cast<void>(own_channel_->get_event(limit));
}

void CompletionQueue::arm(bool solicited_only) {
  if (!channel_) return;  // nobody to tell
  solicited_only_ = solicited_only;
  arming_.arm();
  if (const int error = request_event())
    refuse_errno(error, "The completion queue cannot be armed");
}

/// Returns an errno. An event too many loses no wake-up.
int CompletionQueue::request_event() {
  const bool only = solicited_only_ && device_->traits().solicited_events;
  return errno_of(ibv_req_notify_cq(get(), only ? 1 : 0));
}

}  // namespace diwarp::bridge
