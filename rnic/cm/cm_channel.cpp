// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "rnic/cm/cm_channel.h"
#include "rnic/cm/cm_core.h"
#include "rnic/cm/request_shares.h"
#include "rnic/engine/blocking_call.h"

namespace diwarp::rnic {

std::optional<CmChannel::Record> CmChannel::get_event(Duration timeout) {
  const Clock& clock = SteadyClock::instance();
  const Time deadline = deadline_after(clock.now(), timeout);
  for (;;) {
    const Time now = clock.now();
    if (wait(std::clamp(deadline - now, Duration::zero(), kLongestWait))) {
      // A purged record has left its wake here.
      if (std::optional<Record> record = pop()) return record;
    } else if (now >= deadline) {
      return std::nullopt;
    }
  }
}

/// True if it used up a wake.
bool CmChannel::wait(Duration limit) {
  std::vector<std::weak_ptr<Engine>> engines;
  {
    const std::lock_guard lock(mutex_);
    engines = engines_;
  }
  for (const std::weak_ptr<Engine>& known : engines) {
    const std::shared_ptr<Engine> engine = known.lock();
    if (!engine) continue;
    if (engine->has_thread()) {
      engine->hand_over();
    } else {
      engine->poll_step();
      limit = std::min(limit, kManualWait);
    }
  }
  return blocking_wait_.wait(limit);
}

std::optional<CmChannel::Record> CmChannel::pop() {
  std::optional<Record> record;
  {
    const std::lock_guard lock(mutex_);
    if (records_.empty()) return std::nullopt;
    record = std::move(records_.front());
    records_.pop_front();
  }
  if (record->request) record->request->forget_pending();
  return record;
}

void CmChannel::add_engine(const std::shared_ptr<Engine>& engine) {
  const std::lock_guard lock(mutex_);
  std::erase_if(engines_, [](const auto& known) { return known.expired(); });
  const bool known = std::any_of(engines_.begin(), engines_.end(),
                                 [&](const auto& other) { return other.lock() == engine; });
  if (!known) engines_.push_back(engine);
}

void CmChannel::push(Record record) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    records_.push_back(std::move(record));
  }
  blocking_wait_.wake();
}

CmChannel::Record CmChannel::exchange(Record request, const RequestShares& shares) {
  const std::lock_guard lock(mutex_);
  const auto to_same_listener = [&](Record& one) {
    const bool is = one.request && one.info.listener == request.info.listener;
    return is ? &one.request->request : nullptr;
  };
  Record* const gives_way =
      closed_ ? nullptr : shares.giving_way(records_, request.request->request, to_same_listener);
  if (gives_way != nullptr) std::swap(*gives_way, request);
  return request;
}

std::vector<CmChannel::Record> CmChannel::purge(uint64_t id) {
  std::vector<Record> taken;
  const std::lock_guard lock(mutex_);
  std::erase_if(records_, [&](Record& record) {
    if (record.info.id != id && record.info.listener != id) return false;
    taken.push_back(std::move(record));
    return true;
  });
  return taken;
}

std::vector<CmChannel::Record> CmChannel::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return {std::make_move_iterator(records_.begin()), std::make_move_iterator(records_.end())};
}

// The listener of a request that is still here has not gone, and so its device has not either.
CmEventChannel::~CmEventChannel() {
  for (CmChannel::Record& record : channel_->close())
    if (record.request) record.request->reject_request({});
}

}  // namespace diwarp::rnic
