// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "llp/stream.h"
#include "rnic/context/meeting.h"
#include "rnic/context/negotiated_connection.h"

namespace diwarp::rnic {

/// The services of a device's control path for an RC queue pair. Start-ups block the caller, and
/// throw as the public calls of QueuePair have it.
class ConnectionControl {
 public:
  virtual ~ConnectionControl() = default;

  /// Connects to a listener: a stream, then MPA's request and reply (RFC 5044 section 7.1).
  virtual NegotiatedConnection connect(const Address& peer, const ConnectOptions& options) = 0;
  /// MPA's start-up over a connected descriptor, which is taken over unless the device's connector
  /// does not adopt it.
  virtual NegotiatedConnection connect_on(int descriptor, const ConnectOptions& options) = 0;
  virtual NegotiatedConnection accept_on(int descriptor, const AcceptOptions& options,
                                         Duration timeout) = 0;

  /// The search for the peer that is named to the queue pair `party` of this number; not begun.
  /// Throws Error as QueuePair::await_peer() has it.
  virtual std::shared_ptr<PendingMeeting> make_meeting(uint32_t number, const NamedPeer& peer,
                                                       MeetingParty& party) = 0;

  /// Writes the final bytes of a connection (the rest of an FPDU, a Terminate), ends its
  /// sending side and keeps it until the peer has closed its own, so that nothing unread resets it;
  /// for a bounded time, as one of a bounded number. The stream has left the engine. Any thread,
  /// with the baton or without.
  virtual void start_lingering_close(std::unique_ptr<llp::Stream> stream,
                                     std::vector<std::byte> final_bytes) = 0;
};

}  // namespace diwarp::rnic
