// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/mpsc_list.h"

namespace diwarp::rnic {

struct TransmitTag;
class InputSource;

/// The state after a transmit call.
enum class Pending : uint8_t {
  nothing,   ///< done, or waiting for a timer of the source's own
  more,      ///< the burst's bound was reached: call again in the next round
  writable,  ///< the link is full: call again when it can be written
  stalled,   ///< a completion queue is full: call again when one was polled
};

struct Served {
  size_t work = 0;  ///< messages or segments moved
  Pending pending = Pending::nothing;
};

/// Something that an engine lets send: work queues with a link below them. All virtual calls are
/// made with the engine's baton held.
class TransmitSource : public MpscNode, public ListNode<TransmitTag> {
 public:
  TransmitSource() = default;
  virtual ~TransmitSource() = default;
  TransmitSource(const TransmitSource&) = delete;
  TransmitSource& operator=(const TransmitSource&) = delete;

  /// Sends one bounded burst, and reports what could not be reported before.
  virtual Served transmit(Time now) = 0;

  /// Whether it stands in line to send.
  bool is_scheduled() const { return place_ == Place::line; }

 private:
  friend class EngineInbox;
  friend class TransmitSet;

  enum class Place : uint8_t {
    none,     ///< in no line; or it is being served
    line,     ///< the scheduler's
    stalled,  ///< the set's, of those that wait for a completion queue
  };

  std::atomic<bool> notified_{false};  // in the engine's inbox
  bool attached_ = false;
  Place place_ = Place::none;
  InputSource* input_ = nullptr;  // of the same link; null: there is none
};

}  // namespace diwarp::rnic
