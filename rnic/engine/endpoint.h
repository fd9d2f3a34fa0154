// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/mpsc_list.h"

namespace diwarp::rnic {

struct ActiveTag;
struct HotTag;

/// What a transmit call left behind.
enum class Pending : uint8_t {
  nothing,   ///< done, or waiting for a timer of the endpoint's own
  more,      ///< the burst's bound was reached: call again in the next round
  writable,  ///< the link is full: call again when it can be written
  stalled,   ///< a completion queue is full: call again when one was polled
};

struct Served {
  size_t work = 0;  ///< messages or segments moved
  Pending pending = Pending::nothing;
};

/// What an engine serves: one side of a link, with work queues behind it (a queue pair). All
/// virtual calls are made by the holder of the engine's baton.
class Endpoint : public MpscNode, public ListNode<ActiveTag>, public ListNode<HotTag> {
 public:
  Endpoint() = default;
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// Takes one bounded burst from the link. Returns how much came.
  virtual size_t receive(Time now) = 0;

  /// Sends one bounded burst, and reports what could not be reported before.
  virtual Served transmit(Time now) = 0;

  /// As llp::DatagramLink has it.
  virtual bool set_watched(bool /*watched*/) { return true; }

 protected:
  /// A send found the link full, and it has not been writable since.
  bool link_is_full() const { return awaits_writable_; }

 private:
  friend class Engine;

  std::atomic<bool> notified_{false};  // in the engine's inbox
  bool attached_ = false;
  bool awaits_writable_ = false;
  bool stalled_ = false;     // linked into the engine's stalled list instead of the active one
  bool always_hot_ = false;  // has no descriptor to watch
  bool gathered_ = false;    // the engine's input queue tells of its input, not the poller
  bool watched_ = false;     // in the engine's poller
  bool reading_ = true;      // wants to know when its descriptor is readable
  uint32_t empty_polls_ = 0;
  uint32_t watched_polls_ = 0;  // asked directly though it is in the poller
  uint32_t round_ = 0;  // of the engine's, in which the poller last told of input
  int descriptor_ = -1;
};

}  // namespace diwarp::rnic
