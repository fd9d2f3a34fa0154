// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/timer_queue.h"
#include "diwarp/device_options.h"
#include "llp/input_queue.h"
#include "rnic/engine/baton.h"
#include "rnic/engine/control_turn.h"
#include "rnic/engine/endpoint.h"
#include "rnic/engine/engine_buffers.h"
#include "rnic/engine/engine_wait.h"
#include "rnic/engine/input_set.h"
#include "rnic/engine/rnic_thread.h"
#include "rnic/engine/takeover.h"
#include "rnic/engine/transmit_scheduler.h"

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
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

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
  TimerQueue& timers() { return timers_; }
  EngineBuffers& buffers() { return buffers_; }
  ControlTurn& control_turn() { return control_turn_; }

  /// Takes an endpoint, or one role of it, into service; as InputSet::attach() has it.
  void attach(Endpoint& endpoint, int descriptor, llp::InputQueue* queue = nullptr);
  void attach(InputSource& source, int descriptor, llp::InputQueue* queue = nullptr) {
    inputs_.attach(source, nullptr, descriptor, queue);
  }
  void attach(TransmitSource& source) { source.attached_ = true; }
  /// The same for a link or a stream, which announces itself until set_key() ends that.
  template <class Source, class Link>
  void attach_link(Source& source, Link& link) {
    attach(source, link.descriptor(), link.input_queue());
    link.set_key(static_cast<InputSource*>(&source));
  }
  void detach(Endpoint& endpoint);
  void detach(InputSource& source) { inputs_.detach(source); }
  void detach(TransmitSource& source);
  /// Whether the source wants to be told about input; off while it cannot take any.
  void set_reading(InputSource& source, bool reading) { inputs_.set_reading(source, reading); }
  /// The source's transmit() is called in this step or the next.
  void activate(TransmitSource& source);
  /// Whether no other endpoint has something to send, or had input lately: asked in transmit().
  bool is_alone(const InputSource& source) const {
    return scheduler_->empty() && inputs_.is_alone(source);
  }
  /// The source's transmit() is called once a completion queue has been polled.
  void stall(TransmitSource& source);

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
  /// Sources that other threads have notified, or that may go on, get in line.
  size_t take_inbox() {
    const bool nothing = !unstall_.load(std::memory_order_relaxed) && inbox_.empty();
    return nothing ? 0 : drain_inbox();
  }
  size_t drain_inbox();
  size_t transmit(Time now);
  size_t serve(TransmitSource& source, Time now);
  void end_stall(TransmitSource& source);
  /// After it, what other threads have left meanwhile is done, by this thread or by a later holder.
  void release_baton() {
    pass_baton();
    if (!inbox_.empty()) run_inbox();
  }
  void pass_baton() {
    if (wait_.any_thread()) wake_waiting_thread();
    baton_.release();
  }
  void run_inbox();
  void wake_waiting_thread();
  Time next_turn(Time now);
  Duration begin_wait(Time now);
  void wait(Duration limit);

  // The RNIC thread's.
  void take_turn();
  void drive();

  const DeviceOptions options_;
  const Clock& clock_;
  Counters& counters_;
  ControlTurn control_turn_;

  // Fields that any thread writes stand on cache lines of their own, apart from those of the
  // holder. A thread pushes to the inbox, then tries the baton; a holder releases it, then looks
  // into the inbox. So one of them sees the other.
  alignas(kCacheLine) Baton baton_;
  MpscList inbox_;  // sources notified by any thread
  std::atomic<bool> unstall_{false};
  EngineWait wait_;

  // Guarded by the baton.
  alignas(kCacheLine) InputSet inputs_;
  std::unique_ptr<TransmitScheduler> scheduler_;
  IntrusiveList<TransmitSource, TransmitTag> stalled_;  // wait for room in a completion queue
  TimerQueue timers_;
  EngineBuffers buffers_;

  // Between the RNIC thread and the others.
  alignas(kCacheLine) Takeover takeover_;
  RnicThread thread_;
};

}  // namespace diwarp::rnic
