// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "rnic/engine/engine_inbox.h"
#include "rnic/engine/input_set.h"
#include "rnic/engine/transmit_scheduler.h"
#include "rnic/engine/transmit_source.h"

namespace diwarp::rnic {

/// The sources that send over an engine's links. Those that have something to send stand in the
/// scheduler's line; those that wait for room in a completion queue are stalled. With the baton.
class TransmitSet {
 public:
  /// `scheduler`: null for round robin. The others have to outlive the set.
  TransmitSet(EngineInbox& inbox, InputSet& inputs, std::unique_ptr<TransmitScheduler> scheduler);

  /// Takes the source into service. `input` receives over the same link; null: nothing does.
  void attach(TransmitSource& source, InputSource* input = nullptr) {
    source.attached_ = true;
    source.input_ = input;
  }
  void detach(TransmitSource& source);
  /// The source's transmit() is called in this step or the next.
  void activate(TransmitSource& source) {
    if (!source.attached_ || source.is_scheduled()) return;
    end_stall(source);
    source.place_ = TransmitSource::Place::line;
    ++in_line_;
    scheduler_->add(source);
  }
  /// The source's transmit() is called once a completion queue has been polled.
  void stall(TransmitSource& source);

  /// Sources that other threads have notified, or that may go on, get in line. Returns how many
  /// were notified.
  size_t take_inbox();
  /// One round. Returns the work done.
  size_t transmit(Time now) { return in_line_ == 0 ? 0 : serve_round(now); }
  /// activate() and a round, in which the source has its turn at once where no other stands in
  /// line. Returns the work done.
  size_t activate_and_transmit(TransmitSource& source, Time now) {
    if (!source.attached_) return 0;
    if (!lone_passes_ || !empty()) {
      activate(source);
      return transmit(now);
    }
    end_stall(source);
    return serve(source, now);
  }

  /// Whether no source stands in line.
  bool empty() const { return in_line_ == 0; }
  bool any_stalled() const { return !stalled_.empty(); }
  /// Whether no other endpoint has something to send, or had input lately: asked in transmit().
  bool is_alone(const InputSource& source) const { return empty() && inputs_.is_alone(source); }

 private:
  size_t serve_round(Time now);
  size_t serve(TransmitSource& source, Time now);
  void end_stall(TransmitSource& source) {
    if (source.place_ != TransmitSource::Place::stalled) return;
    source.place_ = TransmitSource::Place::none;
    stalled_.remove(source);
  }

  EngineInbox& inbox_;
  InputSet& inputs_;
  const std::unique_ptr<TransmitScheduler> scheduler_;
  const bool lone_passes_;  // the scheduler's
  size_t in_line_ = 0;      // sources, the scheduler's
  IntrusiveList<TransmitSource, TransmitTag> stalled_;
};

}  // namespace diwarp::rnic
