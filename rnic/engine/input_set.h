// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "llp/input_queue.h"
#include "llp/poller.h"
#include "rnic/engine/engine_wait.h"
#include "rnic/engine/input_source.h"
#include "rnic/engine/overload.h"
#include "rnic/engine/recent_announcements.h"

namespace diwarp::rnic {

/// Sources that may be busy-polled: asked for input in every step, without a look at the poller.
inline constexpr size_t kBusyPolledSources = 16;
/// More of them are an overload: then none is busy-polled, and the poller tells in every step which
/// have input. That lasts until in an epoch, so many looks, no more than kBusyPolledSources had
/// any.
inline constexpr uint32_t kLooksPerEpoch = 256;
/// A source that gave nothing so many times in a row is not busy-polled any more.
inline constexpr uint32_t kEmptyPollsUntilPoller = 4096;
/// One that was asked directly so many times leaves the poller until a thread waits there: a
/// socket in epoll costs each sender to it a few percent. So many that an application that waits
/// between messages hardly ever comes here.
inline constexpr uint32_t kPollsUntilUnwatched = 512;
/// With all traffic on busy-polled sources, the poller is asked once in so many steps: a look costs
/// about as much as two empty receives, so this keeps it to a few percent.
inline constexpr uint32_t kStepsPerLook = 16;

/// The sources of input of an engine, and how it finds out where there is some: it asks the sources
/// that had input lately directly (the busy-polled set), and learns of all others from the poller,
/// or from the input queues that gather for many. With the baton.
class InputSet {
 public:
  /// A source's link may be written again, or has failed.
  using OnWritable = std::function<void(TransmitSource&)>;

  InputSet(EngineWait& wait, OnWritable on_writable);

  /// Takes the source into service. `descriptor` is watched for input, if no `queue` gathers all;
  /// -1: there is none, and the source is asked in every step. `transmits` sends over the same
  /// link; null: nothing does. Throws Error where the system cannot watch it.
  void attach(InputSource& source, TransmitSource* transmits, int descriptor,
              llp::InputQueue* queue);
  void detach(InputSource& source);
  /// Whether the source wants to be told about input; off while it cannot take any.
  void set_reading(InputSource& source, bool reading);

  /// One step: asks all that may have input. Returns how much came.
  size_t receive(Time now);
  /// The next step asks the poller.
  void look_soon() { steps_since_look_ = kStepsPerLook; }
  /// Something went out over the source's link: an answer may come.
  void expect_input(InputSource& source) {
    if (!source.gathered_) start_busy_polling(source);
  }
  /// Tells once the source's link can be written. False where it cannot be watched.
  bool watch_until_writable(InputSource& source);
  /// Whether no other source had input lately.
  bool is_alone(const InputSource& source) const;

  /// Before a thread waits: all sources have to be in the poller. False where some cannot be.
  bool watch_all();
  /// The same while one waits, after a step of another thread's. In the poller they are all the
  /// time, but those with an input queue beside may have been awake.
  bool watch_announcing() { return announcing_ == 0 || watch_all(); }
  /// How long all is well without a step while all descriptors stay silent.
  Duration silence() const;

 private:
  size_t look_at_poller(Time now);
  bool is_queue(const void* key) const;
  void after_direct_poll(InputSource& source, bool came);

  void start_busy_polling(InputSource& source);
  void stop_busy_polling(InputSource& source);
  void begin_overload();

  void set_wants_writable(InputSource& source, bool wanted);
  bool watch(InputSource& source);
  void unwatch(InputSource& source);
  void update_watch(InputSource& source);
  void unwatch_gathered(InputSource& source);

  size_t gather(llp::InputQueue& queue, bool told, Time now);
  void tell_room(InputSource& source);
  size_t receive_once(InputSource& source, Time now);

  EngineWait& wait_;
  const OnWritable on_writable_;
  llp::Poller& poller_;
  std::vector<llp::PollEvent> events_;
  std::vector<llp::InputQueue*> queues_;

  IntrusiveList<InputSource, BusyPolledTag> busy_polled_;
  size_t busy_polled_count_ = 0;
  size_t with_descriptor_ = 0;              // sources whose descriptor tells of their input
  size_t busy_polled_with_descriptor_ = 0;  // of those, the busy-polled ones
  size_t wanting_writable_ = 0;
  size_t gathered_watched_count_ = 0;  // whose input is gathered, and which the poller has as well
  size_t announcing_ = 0;              // with an input queue that does not gather all
  // Sources whose input is gathered are busy-polled no longer than a step, so what they announced
  // lately stands here.
  RecentAnnouncements announcements_;
  uint32_t steps_since_look_ = 0;
  Overload overload_{kBusyPolledSources, kLooksPerEpoch};
};

}  // namespace diwarp::rnic
