// SPDX-License-Identifier: Apache-2.0
#include "dgram/sender.h"

#include <algorithm>
#include <cassert>

#include "base/serial.h"

namespace diwarp::dgram {
namespace {

static_assert(Congestion::kMaxWindow <= SequenceWindow::kCapacity);
constexpr uint8_t kMostReordering = 64;
// Timeouts in a row, after which the path is taken for congested to the utmost.
constexpr uint16_t kTimeoutsToCollapse = 3;
constexpr Duration kIdle = std::chrono::seconds(1);

bool acknowledges_unsent(const SequenceWindow& window, uint64_t cumulative, const RdMap* map) {
  if (cumulative >= window.next()) return true;
  return map != nullptr && map->size() != 0 && cumulative + map->size() >= window.next();
}

/// A datagram that was sent again and is acknowledged sooner than a round trip takes: it was the
/// first transmission that came, and nothing was lost.
bool is_of_first_transmission(const TxSlot& arrived, const RoundTrip& round_trip, Time now) {
  return arrived.has(TxSlot::repeated) && now - arrived.sent < round_trip.shortest() / 2;
}

}  // namespace

// --- What to send.

bool Sender::may_send(uint32_t ahead, uint32_t again) const {
  const bool in_window =
      window().is_open(ahead) && window().unreleased() + ahead < SequenceWindow::kCapacity;
  return in_window && scoreboard_.in_flight() + ahead + again < congestion_.window();
}

uint64_t Sender::next_lost(uint64_t from, uint32_t ahead) const {
  const bool room = scoreboard_.in_flight() + ahead < congestion_.window();
  return scoreboard_.next_lost(from, !room);
}

void Sender::add(const TxTag& tag, uint8_t flags, Time now) {
  const bool ready = scoreboard_.prepare();
  assert(ready);
  static_cast<void>(ready);
  if (window().idle()) {
    outstanding_since_ = now;
    advanced_ = now;
    // guard(dgram)
    backoff_ = 0;  // what probes made of it says nothing of this
    if (now - std::max(last_sent_, last_news_) > kIdle) congestion_.idled();
  }
  scoreboard_.add(tag, flags, now);
  last_sent_ = now;
}

void Sender::resent(uint64_t sequence, Time now) {
  scoreboard_.resend(sequence, now);
  ++retransmitted_;
  last_sent_ = now;
}

// --- What the peer says.

Sender::News Sender::acknowledged(uint32_t wire, uint16_t peer_window, const RdMap* map, Time now) {
  const SequenceWindow& window = scoreboard_.window();
  const uint64_t cumulative = window.extend(wire);
  // Behind the one that is acknowledged already it may be anything: an old datagram.
  const bool old = static_cast<int64_t>(cumulative + 1 - window.first_unacknowledged()) < 0;
  if (old) return News::stale;
  if (acknowledges_unsent(window, cumulative, map)) return News::invalid_ack;

  const uint32_t scale = congestion_.slow_start() ? 2 : 1;
  const bool limited = scoreboard_.in_flight() * scale + 1 >= congestion_.window();
  if (window.first_unacknowledged() <= cumulative) advanced_ = now;
  Arrivals arrivals;
  scoreboard_.acknowledge(cumulative, peer_window, map,
                          [&](const TxSlot& slot) { arrived(slot, now, arrivals); });
  if (arrivals.count == 0) return News::stale;
  account(arrivals, limited, now);
  detect_losses(now);
  return News::progress;
}

void Sender::arrived(const TxSlot& slot, Time now, Arrivals& arrivals) {
  ++arrivals.count;
  const bool was_lost = slot.has(TxSlot::lost) && !slot.has(TxSlot::urgent);
  if (was_lost || is_of_first_transmission(slot, round_trip_, now)) {
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
}

void Sender::account(const Arrivals& arrivals, bool limited, Time now) {
  last_news_ = now;
  backoff_ = 0;
  if (arrivals.sample) {
    round_trip_.add(*arrivals.sample);
    congestion_.sampled(*arrivals.sample);
  }
  const uint64_t una = window().first_unacknowledged();
  if (una >= round_) {
    round_ = window().next();
    congestion_.round_over();
  }
  if (una >= recovery_)
    congestion_.acknowledged(arrivals.count, limited, round_trip_.smoothed(), now);
}

/// RFC 8985's idea with RFC 9002's bounds: what was sent before something that came is lost once
/// enough came or enough time passed.
void Sender::detect_losses(Time now) {
  loss_time_ = Time::max();
  if (window().idle() || !any_came_) return;
  const uint64_t first = window().first_unacknowledged();
  const bool in_order = scoreboard_.early() == 0 && scoreboard_.lost() == 0 &&
                        serial_before(latest_order_, scoreboard_.slot(first).order);
  if (in_order) return;
  for (uint64_t at = first; at < window().next(); ++at) {
    const TxSlot& candidate = scoreboard_.slot(at);
    if (candidate.has(TxSlot::came | TxSlot::lost) || !check_lost(candidate, now)) continue;
    scoreboard_.lose(at);
    if (at < recovery_) continue;
    recovery_ = window().next();
    congestion_.lost(now);
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

// --- Time.

/// Never longer than `longest`: where a round trip takes longer, something is sent again in vain.
Duration Sender::backed_off(Duration longest) const {
  const Duration once = std::min(round_trip_.timeout(), longest);
  return std::min(once * (int64_t{1} << std::min<uint16_t>(backoff_, 16)), longest);
}

std::optional<Time> Sender::stuck_since() const {
  if (window().idle() || scoreboard_.slot(window().first_unacknowledged()).has(TxSlot::came))
    return std::nullopt;
  return advanced_;
}

std::optional<Time> Sender::deadline(bool wanted, Duration longest) const {
  if (loss_time_ != Time::max()) return loss_time_;
  if (window().idle() && !wanted) return std::nullopt;
  const Time since = window().idle() ? std::max({last_sent_, last_news_, waiting_since_})
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
  if (backoff_ == kTimeoutsToCollapse && scoreboard_.early() + 1 < window().outstanding())
    congestion_.collapsed(now);
  waiting_since_ = now;
  last_sent_ = now;  // or the deadline would stay where it is when nothing can be sent
  return !scoreboard_.recall_outermost();
}

}  // namespace diwarp::dgram
