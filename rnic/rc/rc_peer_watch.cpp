// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_peer_watch.h"

#include <algorithm>

namespace diwarp::rnic {

namespace {

/// Looks in a user timeout: so many that retransmissions between an answer and the next look, which
/// no look counts, are few.
constexpr int kLooks = 20;
constexpr Duration kLongestInterval = std::chrono::seconds(1);
/// Probes of a closed window in a user timeout: kUnansweredTries, with one to spare.
constexpr int kProbes = 5;

}  // namespace

void RcPeerWatch::start(llp::PeerProbe* probe, const PeerTimeouts& timeouts) {
  probe_ = probe;
  timeouts_ = timeouts;
  backoff_.reset();
  probing_ = timeouts.keep_alive;
  if (probe_ == nullptr) return;
  probe_->clear_user_timeout();  // guard(silent-peers)
  probe_->keep_alive(probing_);
}

void RcPeerWatch::stop() {
  timers_.cancel(timer_);
  probe_ = nullptr;
}

void RcPeerWatch::begin(Time now) {
  acks_.start(now);
  look_again(now);
}

/// No later than when the time is over.
void RcPeerWatch::look_again(Time now) {
  const Duration interval = std::min(timeouts_.user_timeout / kLooks, kLongestInterval);
  const Duration left = timeouts_.user_timeout - acks_.silence();
  timers_.arm(timer_, now + (left > Duration::zero() ? std::min(interval, left) : interval));
}

void RcPeerWatch::look(Time now) {
  const auto state = probe_->ack_state();
  if (!state) return;
  if (acks_.is_silent(*state, now, timeouts_.user_timeout))
    return handler_.lose_connection(RcEnd::timed_out);
  const bool response_pending = !requester_.idle();
  const bool sooner =
      timeouts_.keep_alive == Duration::zero() || timeouts_.user_timeout < timeouts_.keep_alive;
  probe_within(response_pending && sooner ? timeouts_.user_timeout : timeouts_.keep_alive);
  probe_closed_window(state->window_closed);
  if (state->outstanding || response_pending) look_again(now);
}

void RcPeerWatch::probe_within(Duration within) {
  if (probing_ != within) probe_->keep_alive(within);
  probing_ = within;
}

/// TCP asks a peer that keeps its window closed ever more rarely, down to once in two minutes: too
/// rarely to know within the user timeout.
void RcPeerWatch::probe_closed_window(bool closed) {
  if (closed && !backoff_) {
    backoff_ = probe_->backoff_limit();
    const Duration most = timeouts_.user_timeout / kProbes;
    if (backoff_ && *backoff_ > most) probe_->limit_backoff(most);
  } else if (!closed && backoff_) {
    probe_->limit_backoff(*backoff_);
    backoff_.reset();
  }
}

}  // namespace diwarp::rnic
