// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

#include "base/clock.h"
#include "rnic/context/negotiated_connection.h"

/// How a queue pair gets the connection of a peer that was named to it, and not connected.
namespace diwarp::rnic {

/// A queue pair that waits for the connection. Called once, with the baton held.
class MeetingParty {
 public:
  virtual ~MeetingParty() = default;
  /// The peer is there.
  virtual void on_met(NegotiatedConnection connection) = 0;
  /// It did not come in time; or there is no memory for the connection.
  virtual void on_missed(std::error_code status) = 0;
};

/// The search for the peer of one party, on the control path.
class PendingMeeting {
 public:
  virtual ~PendingMeeting() = default;
  /// Any thread, without the baton.
  virtual void begin() = 0;
  /// It ends so long from now. With the baton.
  virtual void limit(Duration timeout) = 0;
  /// The party is told nothing any more. With the baton.
  virtual void cancel() noexcept = 0;
};

}  // namespace diwarp::rnic
