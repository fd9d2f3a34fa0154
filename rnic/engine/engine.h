// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/timer_queue.h"
#include "diwarp/device_options.h"
#include "rnic/engine/baton.h"
#include "rnic/engine/control_turn.h"
#include "rnic/engine/engine_buffers.h"
#include "rnic/engine/engine_inbox.h"
#include "rnic/engine/engine_wait.h"
#include "rnic/engine/idle_polls.h"
#include "rnic/engine/input_set.h"
#include "rnic/engine/rnic_thread.h"
#include "rnic/engine/takeover.h"
#include "rnic/engine/transmit_scheduler.h"
#include "rnic/engine/transmit_set.h"
#include "rnic/engine/work_meter.h"

namespace diwarp::rnic {

/// Timers fired per step, so that one step stays short.
inline constexpr size_t kTimersPerStep = 64;

/// Runs queue pairs: receive, transmit, timers. One thread at a time does, the holder of the baton:
/// the RNIC thread, or an application thread that polls or posts (docs/threading.md).
class Engine {
 public:
  /// `scheduler`: null for round robin.
  Engine(const DeviceOptions& options, const Clock& clock, Counters& counters,
         std::unique_ptr<TransmitScheduler> scheduler = nullptr);
  ~Engine();

  // --- Any thread, without the baton.

  /// One step, if nobody else is stepping; counts as the application driving the engine, so the
  /// RNIC thread keeps away for a while. Returns the work done.
  size_t poll_step();

  /// Tells that `source` has something to send, and sends it at once if the baton is free.
  void notify(TransmitSource& source);

  /// Runs `work` with the baton held: nothing else of the engine runs meanwhile.
  template <class Work>
  decltype(auto) exclusively(Work&& work) {
    const BatonGuard guard(*this);
    return std::forward<Work>(work)();
  }

  /// The application stops driving the engine: the RNIC thread takes over at once.
  void hand_over() { takeover_.hand_over(); }

  /// Waits until there may be work, at most `limit`. For manual mode.
  void wait_for_work(Duration limit);

  bool has_thread() const { return thread_.running(); }
  const Clock& clock() const { return clock_; }
  const DeviceOptions& options() const { return options_; }

  /// Sources that stalled on a full completion queue may go on.
  void unstall();

  /// Wakes a thread that waits for the engine. For links without a descriptor.
  void wake() { wait_.wake(); }

  // --- With the baton.

  Counters& counters() { return counters_; }
  InputSet& inputs() { return inputs_; }
  TransmitSet& transmits() { return transmits_; }
  TimerQueue& timers() { return timers_; }
  EngineBuffers& buffers() { return buffers_; }
  ControlTurn& control_turn() { return control_turn_; }

 private:
  /// Holds the baton for its lifetime, ahead of those that only try.
  class BatonGuard {
   public:
    explicit BatonGuard(Engine& engine) : engine_(engine) { engine_.baton_.take(); }
    ~BatonGuard();

   private:
    Engine& engine_;
  };

  size_t do_work(Time now);
  size_t end_step(Time began, bool busy);
  void transmit(TransmitSource* first = nullptr);
  size_t transmit_at(Time now, TransmitSource* first);
  void measure_transmit(TransmitSource* first);
  void measure(Time began, bool worked);
  /// After it, what other threads have left meanwhile is done, by this thread or by a later holder.
  void release_baton() {
    pass_baton();
    if (inbox_.has_sources()) run_inbox();
  }
  void pass_baton() {
    if (wait_.any_thread()) wake_waiting_thread();
    baton_.release();
  }
  void run_inbox();
  void wake_waiting_thread();
  Duration begin_wait(Time now);
  void take_turn();

  const DeviceOptions options_;
  const Clock& clock_;
  Counters& counters_;
  ControlTurn control_turn_;

  // Fields that any thread writes stand on cache lines of their own, apart from those of the
  // holder.
  alignas(kCacheLine) Baton baton_;
  EngineInbox inbox_;
  EngineWait wait_;

  // Guarded by the baton.
  alignas(kCacheLine) InputSet inputs_;
  TransmitSet transmits_;
  TimerQueue timers_;
  EngineBuffers buffers_;
  WorkMeter transmit_meter_;

  // Between the RNIC thread and the others.
  alignas(kCacheLine) Takeover takeover_;
  IdlePolls idle_polls_;
  RnicThread thread_;
};

}  // namespace diwarp::rnic
