// SPDX-License-Identifier: Apache-2.0
#include "provider/cm_channel.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "provider/waitable.h"

namespace diwarp::provider {

uint64_t next_cm_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

std::optional<CmChannel::Event> CmChannel::get_event(Duration timeout) {
  const Clock& clock = SteadyClock::instance();
  const Time deadline = deadline_after(clock.now(), timeout);
  for (;;) {
    const Time now = clock.now();
    if (wait(std::clamp(deadline - now, Duration::zero(), kLongestWait))) {
      // A purged record has left its wake here.
      if (std::optional<Record> record = pop()) {
        auto id = record->request ? record->request->fetch(shared_from_this()) : nullptr;
        return Event{std::move(record->info), std::move(id)};
      }
    } else if (now >= deadline) {
      return std::nullopt;
    }
  }
}

/// True if it used up a wake.
bool CmChannel::wait(Duration limit) {
  std::vector<std::weak_ptr<Waitable>> devices;
  {
    const std::lock_guard lock(mutex_);
    devices = devices_;
  }
  for (const std::weak_ptr<Waitable>& known : devices)
    if (const std::shared_ptr<Waitable> device = known.lock()) limit = device->before_wait(limit);
  return blocking_wait_.wait(limit);
}

std::optional<CmChannel::Record> CmChannel::pop() {
  const std::lock_guard lock(mutex_);
  if (records_.empty()) return std::nullopt;
  Record record = std::move(records_.front());
  records_.pop_front();
  return record;
}

void CmChannel::add(const std::shared_ptr<Waitable>& device) {
  const std::lock_guard lock(mutex_);
  std::erase_if(devices_, [](const auto& known) { return known.expired(); });
  const bool known = std::any_of(devices_.begin(), devices_.end(),
                                 [&](const auto& other) { return other.lock() == device; });
  if (!known) devices_.push_back(device);
}

void CmChannel::push(Record record) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    records_.push_back(std::move(record));
  }
  blocking_wait_.wake();
}

namespace {

bool concerns(const CmChannel::Record& record, uint64_t id) {
  return record.info.id == id || record.info.listener == id;
}

}  // namespace

void CmChannel::move_events(uint64_t id, CmChannel& to) {
  size_t moved = 0;
  {
    const std::scoped_lock locks(mutex_, to.mutex_);
    const auto of_id = [id](const Record& record) { return concerns(record, id); };
    moved = static_cast<size_t>(std::ranges::count_if(records_, of_id));
    const size_t before = to.records_.size();
    to.records_.resize(before + moved);
    auto place = to.records_.begin() + static_cast<std::ptrdiff_t>(before);
    for (Record& record : records_)
      if (of_id(record)) *place++ = std::move(record);
    std::erase_if(records_, of_id);  // a record keeps its numbers when it is moved
  }
  for (; moved != 0; --moved) to.blocking_wait_.wake();
}

std::vector<CmChannel::Record> CmChannel::purge(uint64_t id) {
  std::vector<Record> taken;
  const std::lock_guard lock(mutex_);
  std::erase_if(records_, [&](Record& record) {
    if (!concerns(record, id)) return false;
    taken.push_back(std::move(record));
    return true;
  });
  return taken;
}

std::vector<CmChannel::Record> CmChannel::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  std::vector<Record> left(std::make_move_iterator(records_.begin()),
                           std::make_move_iterator(records_.end()));
  records_.clear();
  return left;
}

// The listener of a request that is still here has not gone, and so its device has not either.
CmEventChannel::~CmEventChannel() {
  for (CmChannel::Record& record : channel_->close())
    if (record.request) record.request->drop();
}

}  // namespace diwarp::provider
