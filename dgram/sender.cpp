// SPDX-License-Identifier: Apache-2.0
#include "dgram/sender.h"

#include <algorithm>
#include <cassert>

#include "base/serial.h"

namespace diwarp::dgram {
namespace {

constexpr uint32_t kCapacity = 4096;
static_assert(Congestion::kMaxWindow <= kCapacity);
constexpr uint8_t kMostReordering = 64;
// Timeouts in a row, after which the path is taken for congested to the utmost.
constexpr uint16_t kTimeoutsToCollapse = 3;
constexpr Duration kIdle = std::chrono::seconds(1);

}  // namespace

// --- What to send.

bool Sender::may_send(uint32_t ahead, uint32_t again) const {
  const bool in_window = next_ + ahead < edge_ && next_ + ahead - released_ < kCapacity;
  return in_window && in_flight_ + ahead + again < congestion_.window();
}

uint64_t Sender::next_lost(uint64_t from, uint32_t ahead) const {
  if (lost_ == 0) return kNone;
  const bool room = in_flight_ + ahead < congestion_.window();
  for (uint64_t at = std::max(from, una_); at < next_; ++at) {
    const TxSlot& candidate = slot(at);
    if (candidate.has(TxSlot::lost) && (room || candidate.has(TxSlot::urgent))) return at;
  }
  return kNone;
}

bool Sender::prepare(uint32_t count, MemoryBudget* budget) {
  const uint64_t needed = next_ - released_ + count;
  return needed <= kCapacity && ring_.reserve(released_, next_, needed, budget);
}

void Sender::sent(const TxTag& tag, Time now) {
  const bool ready = prepare();
  assert(ready);
  static_cast<void>(ready);
  if (idle()) {
    outstanding_since_ = now;
    advanced_ = now;
    // guard(dgram)
    backoff_ = 0;  // what probes made of it says nothing of this
    if (now - std::max(last_sent_, last_news_) > kIdle) congestion_.idled();
  }
  TxSlot& fresh = slot(next_++);
  fresh = {.tag = tag};
  transmit(fresh, now);
}

void Sender::sent_skip(const TxTag& tag, Time now) {
  sent(tag, now);
  slot(next_ - 1).flags |= TxSlot::given_up;
}

void Sender::resent(uint64_t sequence, Time now) {
  TxSlot& again = slot(sequence);
  assert(again.has(TxSlot::lost));
  --lost_;
  again.flags = static_cast<uint8_t>((again.flags & TxSlot::given_up) | TxSlot::repeated);
  ++retransmitted_;
  transmit(again, now);
}

void Sender::transmit(TxSlot& sent, Time now) {
  sent.order = ++order_;
  sent.sent = now;
  last_sent_ = now;
  ++in_flight_;
}

void Sender::recall(uint64_t sequence) {
  if (sequence < una_ || sequence >= next_) return;
  TxSlot& recalled = slot(sequence);
  if (recalled.has(TxSlot::came)) return;
  if (!recalled.has(TxSlot::lost)) lose(recalled);
  recalled.flags |= TxSlot::urgent;
}

void Sender::recall_first() {
  if (idle()) return;
  TxSlot& first = slot(una_);
  if (first.has(TxSlot::came)) {
    first.flags = static_cast<uint8_t>(first.flags & ~TxSlot::came);
    --early_;
    ++in_flight_;
  }
  recall(una_);
}

// --- What the peer says.

bool Sender::acknowledges_unsent(uint64_t cumulative, const RdMap* map) const {
  if (cumulative >= next_) return true;
  return map != nullptr && map->size() != 0 && cumulative + map->size() >= next_;
}

Sender::News Sender::acknowledged(uint32_t wire, uint16_t window, const RdMap* map, Time now) {
  const uint64_t cumulative = rd_extend(wire, una_ - 1);
  // Behind the one that is acknowledged already it may be anything: an old datagram.
  const bool old = static_cast<int64_t>(cumulative - (una_ - 1)) < 0;
  if (old) return News::stale;
  if (acknowledges_unsent(cumulative, map)) return News::invalid_ack;
  edge_ = std::max(edge_, cumulative + 1 + window);

  const bool limited = in_flight_ * (congestion_.slow_start() ? 2 : 1) + 1 >= congestion_.window();
  Arrivals arrivals;
  if (una_ <= cumulative) advanced_ = now;
  for (; una_ <= cumulative; ++una_) {
    if (slot(una_).has(TxSlot::came))
      --early_;
    else
      arrived(slot(una_), now, arrivals);
  }
  if (map != nullptr) take_map(cumulative, *map, now, arrivals);
  if (arrivals.count == 0) return News::stale;
  account(arrivals, limited, now);
  detect_losses(now);
  return News::progress;
}

void Sender::take_map(uint64_t cumulative, const RdMap& map, Time now, Arrivals& arrivals) {
  const size_t size = map.size();
  for (size_t bit = 0; bit < size; ++bit) {
    if (!map.test(bit)) continue;
    TxSlot& early = slot(cumulative + 1 + bit);
    if (early.has(TxSlot::came)) continue;
    arrived(early, now, arrivals);
    ++early_;
  }
}

/// A datagram that was sent again and is acknowledged sooner than a round trip takes: it was the
/// first transmission that came, and nothing was lost.
bool Sender::is_of_first_transmission(const TxSlot& arrived, Time now) const {
  return arrived.has(TxSlot::repeated) && now - arrived.sent < round_trip_.shortest() / 2;
}

void Sender::arrived(TxSlot& slot, Time now, Arrivals& arrivals) {
  ++arrivals.count;
  if (slot.has(TxSlot::lost))
    --lost_;
  else
    --in_flight_;
  const bool was_lost = slot.has(TxSlot::lost) && !slot.has(TxSlot::urgent);
  if (was_lost || is_of_first_transmission(slot, now)) {
    reordering_ = std::min<uint8_t>(static_cast<uint8_t>(reordering_ * 2), kMostReordering);
  } else {
    if (!any_came_ || serial_before(latest_order_, slot.order)) latest_order_ = slot.order;
    any_came_ = true;
  }
  // Earlier ones may have come long ago, their acknowledgements lost.
  if (arrivals.count == 1 || serial_before(arrivals.order, slot.order)) {
    arrivals.order = slot.order;
    arrivals.sample.reset();
    if (!slot.has(TxSlot::repeated)) arrivals.sample = now - slot.sent;
  }
  slot.flags =
      static_cast<uint8_t>((slot.flags & (TxSlot::repeated | TxSlot::given_up)) | TxSlot::came);
}

void Sender::account(const Arrivals& arrivals, bool limited, Time now) {
  last_news_ = now;
  backoff_ = 0;
  if (arrivals.sample) {
    round_trip_.add(*arrivals.sample);
    congestion_.sampled(*arrivals.sample);
  }
  if (una_ >= round_) {
    round_ = next_;
    congestion_.round_over();
  }
  if (una_ >= recovery_)
    congestion_.acknowledged(arrivals.count, limited, round_trip_.smoothed(), now);
}

/// RFC 8985's idea with RFC 9002's bounds: what was sent before something that came is lost once
/// enough came or enough time passed.
void Sender::detect_losses(Time now) {
  loss_time_ = Time::max();
  if (una_ == next_ || !any_came_) return;
  const bool in_order = early_ == 0 && lost_ == 0 && serial_before(latest_order_, slot(una_).order);
  if (in_order) return;
  for (uint64_t at = una_; at < next_; ++at) {
    TxSlot& candidate = slot(at);
    if (candidate.has(TxSlot::came | TxSlot::lost) || !check_lost(candidate, now)) continue;
    lose(candidate);
    enter_recovery(at, now);
  }
}

bool Sender::check_lost(const TxSlot& candidate, Time now) {
  if (!serial_before(candidate.order, latest_order_)) return false;
  if (latest_order_ - candidate.order >= reordering_) return true;
  const Time patience = candidate.sent + round_trip_.reordering();
  if (patience <= now) return true;
  loss_time_ = std::min(loss_time_, patience);
  return false;
}

void Sender::lose(TxSlot& slot) {
  slot.flags |= TxSlot::lost;
  ++lost_;
  --in_flight_;
}

void Sender::enter_recovery(uint64_t sequence, Time now) {
  if (sequence < recovery_) return;
  recovery_ = next_;
  congestion_.lost(now);
}

std::optional<Sender::Released> Sender::release() {
  if (released_ == una_) return std::nullopt;
  const TxSlot& oldest = slot(released_++);
  return Released{.tag = oldest.tag, .given_up = oldest.has(TxSlot::given_up)};
}

bool Sender::was_sent(uint32_t sequence) const {
  const uint64_t number = rd_extend(sequence, next_);
  // guard(dgram): without && number + kCapacity >= una_
  // guard(rd-reset-names): without number < next_ &&
  return number < next_ && number + kCapacity >= una_ && number + 1 >= first_;
}

void Sender::give_up(const MessageName& message) {
  // guard(dgram): without slot(at).tag.message == message &&
  for (uint64_t at = released_; at != next_; ++at)
    if (slot(at).tag.message == message && !slot(at).tag.failure)
      slot(at).flags |= TxSlot::given_up;
}

void Sender::release_memory() {
  if (released_ != next_) return;
  ring_ = TransmitRing();
}

// --- Time.

/// Never longer than `longest`: where a round trip takes longer, something is sent again in vain.
Duration Sender::backed_off(Duration longest) const {
  const Duration once = std::min(round_trip_.timeout(), longest);
  return std::min(once * (int64_t{1} << std::min<uint16_t>(backoff_, 16)), longest);
}

std::optional<Time> Sender::stuck_since() const {
  if (idle() || slot(una_).has(TxSlot::came)) return std::nullopt;
  return advanced_;
}

std::optional<Time> Sender::deadline(bool wanted, Duration longest) const {
  if (loss_time_ != Time::max()) return loss_time_;
  if (idle() && !wanted) return std::nullopt;
  const Time since = idle() ? std::max({last_sent_, last_news_, waiting_since_})
                            : std::max({last_sent_, last_news_});
  return since + backed_off(longest);
}

bool Sender::on_deadline(Time now, bool wanted, Duration longest) {
  const std::optional<Time> due = deadline(wanted, longest);
  if (!due || *due > now) return false;
  if (loss_time_ != Time::max()) {
    detect_losses(now);
    return false;
  }
  if (backoff_ < UINT16_MAX) ++backoff_;
  if (backoff_ == kTimeoutsToCollapse && early_ + 1 < outstanding()) congestion_.collapsed(now);
  waiting_since_ = now;
  last_sent_ = now;  // or the deadline would stay where it is when nothing can be sent
  if (idle() || early_ == outstanding()) return true;
  // The first missing one makes progress, the last one tells about all between.
  uint64_t first = una_;
  while (slot(first).has(TxSlot::came)) ++first;
  recall(first);
  uint64_t last = next_ - 1;
  while (slot(last).has(TxSlot::came)) --last;
  if (last != first) recall(last);
  return false;
}

}  // namespace diwarp::dgram
