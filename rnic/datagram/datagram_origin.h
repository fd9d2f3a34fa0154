// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "rnic/datagram/datagram_room.h"

namespace diwarp::rnic {

/// Something of a queue pair over datagrams that has datagrams to send: its send queue, its Reads,
/// the responses to others' Reads, control messages. The DatagramSender asks all in turn. With the
/// baton.
class DatagramOrigin {
 public:
  DatagramOrigin() = default;
  virtual ~DatagramOrigin() = default;
  DatagramOrigin(const DatagramOrigin&) = delete;
  DatagramOrigin& operator=(const DatagramOrigin&) = delete;

  /// Adds datagrams (with this origin in their marks) while `room` says there is room, and no more
  /// than there are. Takes nothing for sent: what is not reported by sent() is added anew next
  /// time.
  virtual void fill(DatagramRoom& room, Time now) = 0;
  /// The link took the datagram with this mark. Called in the order of adding.
  virtual void sent(const DatagramMark& mark) = 0;
  /// The link did not take the datagram with this mark, or never will (refused() follows): ask
  /// again in the next fill().
  virtual void unsent(const DatagramMark& /*mark*/) {}
  /// The link will never take the datagram with this mark; those before it were sent. `error` is an
  /// errno; EMSGSIZE: the path may carry less than it did, and max_datagram() tells so by now.
  virtual void refused(const DatagramMark& mark, int error) = 0;
};

}  // namespace diwarp::rnic
