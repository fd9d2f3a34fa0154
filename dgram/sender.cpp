// SPDX-License-Identifier: Apache-2.0
#include "dgram/sender.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/serial.h"

namespace diwarp::dgram {
namespace {

static_assert(CongestionController::kMaxWindow <= SequenceWindow::kCapacity);
// Timeouts in a row, after which the path is taken for congested to the utmost.
constexpr uint16_t kTimeoutsToCollapse = 3;
// And never sooner than that after the last news: an end may not have been scheduled.
constexpr Duration kLeastSilence = std::chrono::milliseconds(100);
constexpr Duration kIdle = std::chrono::seconds(1);

bool acknowledges_unsent(const SequenceWindow& window, uint64_t cumulative, const RdMap* map) {
  if (cumulative >= window.next()) return true;
  return map != nullptr && map->size() != 0 && cumulative + map->size() >= window.next();
}

/// A datagram that was sent again and is acknowledged sooner than a round trip takes: it was an
/// earlier transmission that came (RFC 8985 section 6.2 step 2), and nothing was lost.
bool is_of_earlier_transmission(const TxSlot& arrived, const RoundTrip& round_trip, Time now) {
  return arrived.has(TxSlot::repeated) && round_trip.measured() &&
         now - arrived.sent < round_trip.shortest();
}

}  // namespace

// --- What to send.

bool Sender::may_send(uint32_t ahead, uint32_t again) const {
  return is_open(ahead) && has_room(ahead + again);
}

void Sender::end_burst(uint32_t ahead, uint32_t again, bool more) {
  const uint32_t burst = ahead + again;
  paced_ = more && burst >= quota_;
  // A peer that takes no more tells as little of the path as an application that has no more.
  const bool limited = !more || (has_room(burst) && !is_open(ahead));
  if (limited) delivery_rate_.limited_by_application(scoreboard_.in_flight() + burst);
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
    if (now - timer_.last_activity() > kIdle) {
      congestion_->idled();
      follow_controller();
    }
  }
  const bool first = scoreboard_.in_flight() == 0;
  transmitted(scoreboard_.add(tag, flags, now), first, now);
}

void Sender::transmitted(TxSlot& slot, bool first, Time now) {
  delivery_rate_.sent(slot, first, now);
  pacer_.sent();
  if (quota_ != 0 && quota_ != UINT32_MAX) --quota_;
  timer_.sent(now);
}

void Sender::resent(uint64_t sequence, Time now) {
  const bool first = scoreboard_.in_flight() == 0;
  transmitted(scoreboard_.resend(sequence, now), first, now);
  ++retransmitted_;
  if (!scoreboard_.is_skip(sequence))
    black_hole_.resent(sequence, scoreboard_.tag(sequence).length);
}

// --- What the peer says.

Sender::News Sender::acknowledged(uint32_t wire, uint16_t peer_window, const RdMap* map, Time now) {
  const bool known = map == nullptr && window().knows(wire, peer_window) && !has_jumped(now);
  return known ? News::stale : take_acknowledgement(wire, peer_window, map, now);
}

Sender::News Sender::take_acknowledgement(uint32_t wire, uint16_t peer_window, const RdMap* map,
                                          Time now) {
  const SequenceWindow& window = scoreboard_.window();
  const uint64_t cumulative = window.extend(wire);
  // Before the one that is acknowledged already it may be anything: an old datagram.
  const bool old = static_cast<int64_t>(cumulative + 1 - window.first_unacknowledged()) < 0;
  if (old) return News::stale;
  if (acknowledges_unsent(window, cumulative, map)) return News::invalid_ack;

  notice_jump(now);
  if (window.first_unacknowledged() <= cumulative) advanced_ = now;
  Arrivals arrivals;
  scoreboard_.acknowledge(cumulative, peer_window, map, [&](uint64_t sequence, const TxSlot& slot) {
    arrived(sequence, slot, now, arrivals);
  });
  if (arrivals.count == 0) return News::stale;
  account(arrivals, now);
  detect_losses(now);
  return News::progress;
}

void Sender::arrived(uint64_t sequence, const TxSlot& slot, Time now, Arrivals& arrivals) {
  delivery_rate_.came();
  black_hole_.arrived(slot.tag.length);
  const bool was_lost = slot.has(TxSlot::lost) && !slot.has(TxSlot::urgent);
  if (was_lost || is_of_earlier_transmission(slot, round_trip_, now)) {
    losses_.tolerate_more();
    ++arrivals.spurious;
  } else {
    if (sequence < highest_ && !slot.has(TxSlot::repeated)) losses_.reordered();
    losses_.came(slot.order, now - slot.sent);
  }
  highest_ = std::max(highest_, sequence);
  // Earlier ones may have come long ago, their acknowledgements lost.
  if (arrivals.count == 0 || serial_before(arrivals.latest.order, slot.order))
    arrivals.latest = slot;
  ++arrivals.count;
}

void Sender::account(const Arrivals& arrivals, Time now) {
  timer_.news(now);
  collapsed_ = false;
  const TxSlot& latest = arrivals.latest;
  AckNews news;
  news.came = arrivals.count;
  news.in_flight = scoreboard_.in_flight();
  news.sent = latest.sent;
  const bool before = now < latest.sent;  // a clock that went back
  if (!latest.has(TxSlot::repeated) && !before) {
    news.sample = std::max(now - latest.sent, Duration(1));
    round_trip_.add(news.sample);
  }
  news.smoothed = round_trip_.smoothed();
  news.rate = delivery_rate_.sample(latest, round_trip_.shortest(), now);
  news.delivered = delivery_rate_.delivered();
  if (arrivals.spurious != 0) congestion_->spurious(arrivals.spurious);
  congestion_->acknowledged(news, now);
  follow_controller();
}

void Sender::detect_losses(Time now) {
  losses_.begin_pass(round_trip_);
  Time latest = Time::min();
  uint32_t count = 0;
  for (uint64_t at = scoreboard_.first_in_flight(); at != Scoreboard::kNone;) {
    const TxSlot& candidate = scoreboard_.slot(at);
    if (losses_.check(candidate.order, candidate.sent, now) != LossDetector::Verdict::lost) break;
    latest = candidate.sent;
    ++count;
    const uint64_t lost = std::exchange(at, scoreboard_.next_in_flight(at));
    scoreboard_.lose(lost);
  }
  if (count == 0) return;
  if (latest > round_lost_) {
    losses_.lost_in_round();
    round_lost_ = now;
  }
  congestion_->lost(count, latest, now);
  follow_controller();
}

// --- Time.

/// Where the clock went back, what waits for a time would wait for as much longer.
void Sender::notice_jump(Time now) {
  if (!has_jumped(now)) return;
  timer_.clock_went_back(now);
  scoreboard_.clock_went_back(now);
  round_lost_ = std::min(round_lost_, now);
  outstanding_since_ = std::min(outstanding_since_, now);
  advanced_ = std::min(advanced_, now);
}

std::optional<Time> Sender::stuck_since() const {
  if (window().idle() || scoreboard_.slot(window().first_unacknowledged()).has(TxSlot::came))
    return std::nullopt;
  return advanced_;
}

std::optional<Time> Sender::deadline(bool wanted, Duration longest) const {
  const std::optional<Time> news = news_deadline(wanted, longest);
  if (!paced_) return news;
  const Time paced = pacer_.due();
  return news ? std::min(*news, paced) : paced;
}

/// When something is to be done because nothing was heard.
std::optional<Time> Sender::news_deadline(bool wanted, Duration longest) const {
  if (losses_.loss_time() != Time::max()) return losses_.loss_time();
  if (window().idle() && !wanted) return std::nullopt;
  return timer_.due(window().idle(), round_trip_.timeout(), longest);
}

bool Sender::on_deadline(Time now, bool wanted, Duration longest) {
  paced_ = false;  // the owner asks what may be sent
  const std::optional<Time> due = news_deadline(wanted, longest);
  if (!due || *due > now) return false;
  if (losses_.loss_time() != Time::max()) {
    detect_losses(now);
    return false;
  }
  const Duration silence = now - std::max(timer_.last_news(), outstanding_since_);
  const uint16_t timeouts = timer_.expired(now);
  if (timeouts >= kTimeoutsToCollapse && silence >= kLeastSilence && !collapsed_ &&
      scoreboard_.early() + 1 < window().outstanding()) {
    collapsed_ = true;
    congestion_->collapsed(now);
    follow_controller();
  }
  return !scoreboard_.recall_outermost() || black_hole_.doubts();
}

}  // namespace diwarp::dgram
