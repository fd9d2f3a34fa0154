// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/counters.h"
#include "base/timer_queue.h"
#include "diwarp/attributes.h"
#include "llp/datagram.h"
#include "llp/input_queue.h"
#include "llp/poller.h"
#include "rnic/engine/datagram_burst.h"
#include "rnic/engine/endpoint.h"
#include "rnic/engine/nap.h"

namespace diwarp::rnic {

// Tunables of the engine, with the reasons for their values.

/// Datagram buffers of an engine: eight trains of 64 KiB stay within an L2 cache. The datagrams are
/// those of eight of the longest trains (llp::UdpLink::kMaxTrain).
inline constexpr size_t kReceiveSlots = 8;
inline constexpr size_t kReceiveSlotBytes = size_t{64} << 10;
inline constexpr size_t kReceiveDatagrams = 1024;
/// Staging for stream bytes: what a few system calls bring.
inline constexpr size_t kStreamBufferBytes = size_t{256} << 10;
/// Endpoints that are asked for input in every step, without a look at the poller.
inline constexpr size_t kHotEndpoints = 16;
/// More of them make a crowd: then none is hot, and the poller tells in every step who has input.
/// That lasts until in so many looks no more than kHotEndpoints had any.
inline constexpr uint32_t kLooksPerRound = 256;
/// An endpoint that gave nothing so many times in a row cools down.
inline constexpr uint32_t kEmptyPollsUntilCold = 4096;
/// One that was asked directly so many times leaves the poller until somebody sleeps there: a
/// socket in epoll costs whoever sends to it a few percent. So many that who sleeps between
/// messages hardly ever comes here.
inline constexpr uint32_t kPollsUntilUnwatched = 512;
/// Who sleeps although a descriptor could not be watched sleeps no longer than this.
inline constexpr Duration kUnwatchedSleep = std::chrono::milliseconds(1);
/// With all traffic on hot endpoints, the poller is asked once in so many steps: a look costs about
/// as much as two empty receives, so this keeps it to a few percent.
inline constexpr uint32_t kStepsPerLook = 16;
/// Timers fired per step, so that one step stays short.
inline constexpr size_t kTimersPerStep = 64;

/// Runs queue pairs: receive, transmit, timers. One thread at a time does, the holder of the baton:
/// the RNIC thread, or an application thread that polls or posts (docs/threading.md).
class Engine {
 public:
  Engine(const DeviceOptions& options, const Clock& clock, Counters& counters);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Any thread, without the baton.

  /// One step, if nobody else is stepping; counts as the application driving the engine, so the
  /// RNIC thread keeps away for a while. Returns the work done.
  size_t poll_step();

  /// Tells that `endpoint` has something to send, and sends it at once if the baton is free.
  void notify(Endpoint& endpoint);

  /// Runs `work` with the baton held: nothing else of the engine runs meanwhile.
  template <class Work>
  decltype(auto) exclusively(Work&& work) {
    Hold hold(*this);
    return std::forward<Work>(work)();
  }

  /// The application stops driving the engine: the RNIC thread takes over at once.
  void hand_over();

  /// Sleeps until there may be work, at most `limit`. For manual mode.
  void sleep_until_work(Duration limit);

  bool has_thread() const { return thread_.joinable(); }
  const Clock& clock() const { return clock_; }
  const DeviceOptions& options() const { return options_; }

  /// Endpoints that stalled on a full completion queue may go on.
  void unstall();

  /// Wakes whoever sleeps for the engine. For links without a descriptor.
  void wake();

  /// In manual mode called in each step: the control path's turn.
  void set_control_step(std::function<size_t()> step) { control_step_ = std::move(step); }

  // --- With the baton.

  Counters& counters() { return counters_; }
  TimerQueue& timers() { return timers_; }
  DatagramBurst& burst() { return burst_; }
  llp::ReceiveBatch& receive_batch() { return batch_; }
  Bytes stream_buffer() { return {stream_buffer_.get(), kStreamBufferBytes}; }

  /// Takes the endpoint into service. `descriptor` is watched for input, if no `queue` (the same
  /// for all endpoints) gathers that; -1: there is none, and the endpoint is asked in every step.
  void attach(Endpoint& endpoint, int descriptor, llp::InputQueue* queue = nullptr);
  /// The same for a link or a stream, which announces itself until set_key() ends that.
  template <class Link>
  void attach_link(Endpoint& endpoint, Link& link) {
    attach(endpoint, link.descriptor(), link.input_queue());
    link.set_key(&endpoint);
  }
  void detach(Endpoint& endpoint);
  /// Whether the endpoint wants to be told about input; off while it cannot take any.
  void set_reading(Endpoint& endpoint, bool reading);
  /// The endpoint's transmit() is called in this step or the next.
  void activate(Endpoint& endpoint);
  /// Whether no other endpoint has something to send, or had input lately: asked in transmit().
  bool is_alone(const Endpoint& endpoint) const;
  /// The endpoint's transmit() is called once a completion queue has been polled.
  void stall(Endpoint& endpoint);

 private:
  /// Holds the baton for its lifetime, ahead of those that only try.
  class Hold {
   public:
    explicit Hold(Engine& engine);
    ~Hold();

   private:
    Engine& engine_;
  };

  size_t do_work(Time now);
  size_t take_inbox();
  size_t receive(Time now);
  size_t look_at_poller(Time now);
  size_t transmit(Time now);
  void serve(Endpoint& endpoint, Time now, size_t& work);

  void heat(Endpoint& endpoint);
  void cool(Endpoint& endpoint);
  void begin_crowd();
  void count_in_round(Endpoint& endpoint);
  void end_round();
  void watch_writable(Endpoint& endpoint, bool wanted);
  void after_direct_poll(Endpoint& endpoint, bool came);
  void unwatch(Endpoint& endpoint);
  bool watch(Endpoint& endpoint);
  void update_watch(Endpoint& endpoint);
  void unwatch_gathered(Endpoint& endpoint);
  void gather(llp::InputQueue& queue);
  void remember_announced(const Endpoint& endpoint);
  bool announced_lately(const Endpoint& by_another_than) const;

  bool try_baton();
  void release_baton();
  void wake_sleeper();
  Time next_turn(Time now);

  void run_thread();
  void nap();
  void put_off_nap(Time now, Time last_drive);
  void drive();
  void park(Time now);
  Duration begin_sleep(Time now);
  void sleep(Duration limit);
  bool application_drives(Time now) const;
  bool is_driving(Time now, Time last_drive) const;

  const DeviceOptions options_;
  const Clock& clock_;
  Counters& counters_;
  std::function<size_t()> control_step_;

  // The baton, and who wants it. Sequentially consistent, as is the inbox: a poster pushes, then
  // tries the baton; a holder releases, then looks into the inbox. So one of them sees the other.
  // What any thread writes stands on cache lines of its own, apart from what the holder works with.
  alignas(kCacheLine) std::atomic<bool> baton_{false};
  std::atomic<uint32_t> waiting_holders_{0};
  MpscList inbox_;  // endpoints notified by any thread
  std::atomic<bool> unstall_{false};

  // Guarded by the baton.
  alignas(kCacheLine) IntrusiveList<Endpoint, ActiveTag> active_;  // have something to do
  IntrusiveList<Endpoint, ActiveTag> stalled_;  // wait for room in a completion queue
  IntrusiveList<Endpoint, HotTag> hot_;
  size_t hot_count_ = 0;
  size_t with_descriptor_ = 0;      // endpoints whose descriptor tells of their input
  size_t hot_with_descriptor_ = 0;  // of those, the hot ones
  size_t awaiting_writable_ = 0;
  llp::InputQueue* input_queue_ = nullptr;  // of those whose input is gathered
  size_t gathered_watched_count_ = 0;       // of these, the ones in the poller nonetheless
  // Endpoints whose input is gathered are hot no longer than a step, so the last two that announced
  // any stand here, the later one first: one of them is not the one that asks whether it is alone.
  struct Announced {
    const Endpoint* endpoint = nullptr;
    uint64_t gather = 0;
  };
  std::array<Announced, 2> announced_;
  uint64_t gathers_ = 0;
  uint32_t steps_since_look_ = 0;
  bool crowded_ = false;
  uint32_t round_ = 1;  // of looks while it is crowded
  uint32_t looks_in_round_ = 0;
  size_t endpoints_in_round_ = 0;  // that had input
  TimerQueue timers_;
  llp::Poller poller_;
  std::vector<llp::PollEvent> events_;
  llp::ReceiveBatch batch_;
  DatagramBurst burst_;
  std::unique_ptr<std::byte[]> stream_buffer_;

  // Between the RNIC thread and the others.
  /// When the application last stepped; Time::min(): it has handed over.
  alignas(kCacheLine) std::atomic<Time> last_drive_{Time::min()};
  std::atomic<Time> put_off_nap_at_{Time::max()};  // by the application, if it steps then
  std::atomic<Duration> nap_length_{Duration::zero()};
  std::atomic<bool> napping_{false};             // the RNIC thread, while the application drives
  std::atomic<uint32_t> sleepers_{0};            // threads that sleep in the poller
  std::atomic<Time> parked_until_{Time::max()};  // who sleeps looks again then at the latest
  std::atomic<bool> poked_{false};               // wake() was called: look again before parking
  std::atomic<bool> stop_{false};
  Nap nap_;
  std::thread thread_;
};

}  // namespace diwarp::rnic
