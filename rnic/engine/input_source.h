// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "llp/room_notice.h"

namespace diwarp::rnic {

struct BusyPolledTag;
class TransmitSource;

/// Something that an engine asks for input: one side of a link. All virtual calls are made with the
/// engine's baton held.
class InputSource : public ListNode<BusyPolledTag> {
 public:
  InputSource() = default;
  virtual ~InputSource() = default;
  InputSource(const InputSource&) = delete;
  InputSource& operator=(const InputSource&) = delete;

  /// Takes one bounded burst from the link. Returns how much came.
  virtual size_t receive(Time now) = 0;

  /// As llp::DatagramLink and llp::Stream have it.
  virtual bool set_watched(bool /*watched*/) { return true; }
  /// As llp::Stream has it, after a send found the link full.
  virtual llp::RoomNotice room_notice() const { return llp::RoomNotice::descriptor; }

 protected:
  /// A send found the link full, and it has not been writable since.
  bool link_is_full() const { return wants_writable_ || awaits_room_; }

 private:
  friend class InputSet;

  TransmitSource* transmits_ = nullptr;  // the one that sends over the same link; null: none does
  bool attached_ = false;
  bool wants_writable_ = false;
  bool awaits_room_ = false;         // an input queue tells when the link has room
  bool always_busy_polled_ = false;  // has no descriptor to watch
  bool gathered_ = false;            // an input queue tells of its input, not the poller
  bool announces_ = false;  // an input queue tells of some of it, and the poller of the rest
  bool watched_ = false;    // in the poller
  bool reading_ = true;     // wants to know when its descriptor is readable
  uint32_t empty_polls_ = 0;
  uint32_t watched_polls_ = 0;  // asked directly though it is in the poller
  uint32_t epoch_ = 0;          // of the set's, in which the poller last told of input
  int descriptor_ = -1;
};

}  // namespace diwarp::rnic
