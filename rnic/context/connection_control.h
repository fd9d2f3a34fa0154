// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "diwarp/connect_options.h"
#include "rnic/context/established.h"

namespace diwarp::rnic {

/// What an RC queue pair asks of its device's control path. Start-ups block the caller, and throw
/// as the public calls of QueuePair have it.
class ConnectionControl {
 public:
  virtual ~ConnectionControl() = default;

  /// Connects to a listener: TCP, then MPA's request and reply (RFC 5044 section 7.1).
  virtual Established connect(const Address& peer, const ConnectOptions& options) = 0;
  /// MPA's start-up over a connected TCP descriptor, which is taken over unless it is not one.
  virtual Established connect_on(int descriptor, const ConnectOptions& options) = 0;
  virtual Established accept_on(int descriptor, const AcceptOptions& options, Duration timeout) = 0;

  /// Writes what is left to say on a connection (the rest of an FPDU, a Terminate), ends its
  /// sending side and keeps it until the peer has closed its own, so that nothing unread resets it;
  /// for a bounded time, as one of a bounded number. Any thread, with the baton or without.
  virtual void linger(UniqueFd connection, std::vector<std::byte> last_words) = 0;
};

}  // namespace diwarp::rnic
