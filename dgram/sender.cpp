// SPDX-License-Identifier: Apache-2.0
#include "dgram/sender.h"

#include <algorithm>
#include <cassert>

#include "base/serial.h"

namespace diwarp::dgram {
namespace {

static_assert(Congestion::kMaxWindow <= SequenceWindow::kCapacity);
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
    timer_.reset_backoff();  // the value that probes gave it says nothing of this
    if (now - timer_.last_activity() > kIdle) congestion_.idled();
  }
  scoreboard_.add(tag, flags, now);
  timer_.sent(now);
}

void Sender::resent(uint64_t sequence, Time now) {
  scoreboard_.resend(sequence, now);
  ++retransmitted_;
  if (!scoreboard_.is_skip(sequence))
    black_hole_.resent(sequence, scoreboard_.tag(sequence).length);
  timer_.sent(now);
}

// --- What the peer says.

Sender::News Sender::acknowledged(uint32_t wire, uint16_t peer_window, const RdMap* map, Time now) {
  const SequenceWindow& window = scoreboard_.window();
  const uint64_t cumulative = window.extend(wire);
  // Before the one that is acknowledged already it may be anything: an old datagram.
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
  black_hole_.arrived(slot.tag.length);
  const bool was_lost = slot.has(TxSlot::lost) && !slot.has(TxSlot::urgent);
  if (was_lost || is_of_first_transmission(slot, round_trip_, now))
    losses_.tolerate_more();
  else
    losses_.came(slot.order);
  // Earlier ones may have come long ago, their acknowledgements lost.
  if (arrivals.count == 1 || serial_before(arrivals.order, slot.order)) {
    arrivals.order = slot.order;
    arrivals.sample.reset();
    if (!slot.has(TxSlot::repeated)) arrivals.sample = now - slot.sent;
  }
}

void Sender::account(const Arrivals& arrivals, bool limited, Time now) {
  timer_.news(now);
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

void Sender::detect_losses(Time now) {
  losses_.begin_pass();
  if (window().idle() || !losses_.any_came()) return;
  const uint64_t first = window().first_unacknowledged();
  const bool in_order = scoreboard_.early() == 0 && scoreboard_.lost() == 0 &&
                        losses_.latest_is_before(scoreboard_.slot(first).order);
  if (in_order) return;
  const Duration patience = round_trip_.reordering();
  for (uint64_t at = first; at < window().next(); ++at) {
    const TxSlot& candidate = scoreboard_.slot(at);
    if (candidate.has(TxSlot::came | TxSlot::lost)) continue;
    if (!losses_.is_lost(candidate.order, candidate.sent + patience, now)) continue;
    scoreboard_.lose(at);
    if (at < recovery_) continue;
    recovery_ = window().next();
    congestion_.lost(now);
  }
}

// --- Time.

std::optional<Time> Sender::stuck_since() const {
  if (window().idle() || scoreboard_.slot(window().first_unacknowledged()).has(TxSlot::came))
    return std::nullopt;
  return advanced_;
}

std::optional<Time> Sender::deadline(bool wanted, Duration longest) const {
  if (losses_.loss_time() != Time::max()) return losses_.loss_time();
  if (window().idle() && !wanted) return std::nullopt;
  return timer_.due(window().idle(), round_trip_.timeout(), longest);
}

bool Sender::on_deadline(Time now, bool wanted, Duration longest) {
  const std::optional<Time> due = deadline(wanted, longest);
  if (!due || *due > now) return false;
  if (losses_.loss_time() != Time::max()) {
    detect_losses(now);
    return false;
  }
  const uint16_t timeouts = timer_.expired(now);
  if (timeouts == kTimeoutsToCollapse && scoreboard_.early() + 1 < window().outstanding())
    congestion_.collapsed(now);
  return !scoreboard_.recall_outermost() || black_hole_.doubts();
}

}  // namespace diwarp::dgram
