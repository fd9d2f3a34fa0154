// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "diwarp/connect_options.h"
#include "diwarp/detail/handle.h"
#include "diwarp/device.h"
#include "diwarp/error.h"
#include "diwarp/queue_pair.h"

namespace diwarp {

namespace provider {
class Listener;
class ConnectionRequest;
class MeetingPoint;
}  // namespace provider

/// A peer that wants a connection. Dropping it unanswered rejects it.
class DIWARP_EXPORT ConnectionRequest {
 public:
  std::span<const std::byte> private_data() const;
  Address peer_address() const;
  /// The revision of MPA that the peer speaks, 1 or 2.
  uint8_t revision() const;
  /// The limits of accept() for ord and ird.
  RequestedDepths depths() const;

  /// Answers and hands the connection to `qp`, an RC queue pair in init, which is then in rts. As
  /// MPA has it, this side's first message waits until the peer's first has come (RFC 5044 section
  /// 7.1.2), which on a peer-to-peer connection comes by itself. Throws Error: invalid_state,
  /// invalid_argument, connection_lost.
  void accept(QueuePair& qp, const AcceptOptions& options = {});

  /// Answers no, with up to 508 bytes of private data (512 where the peer speaks revision 1).
  void reject(std::span<const std::byte> private_data = {});

 private:
  friend class detail::HandleAccess;
  explicit ConnectionRequest(std::shared_ptr<provider::ConnectionRequest> impl);
  detail::Handle<provider::ConnectionRequest> impl_;
};

/// Listens for RC connections on a TCP port of the device's address.
class DIWARP_EXPORT Listener {
 public:
  /// Port 0: a free one. Throws Error(address_in_use) and the like.
  Listener(const Device& device, uint16_t port, const ListenOptions& options = {});

  /// The next request; nothing after `timeout` (negative: waits for ever).
  std::optional<ConnectionRequest> get_request(Duration timeout);

  Address address() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::Listener> impl_;
};

/// A TCP port of the device's address at which its queue pairs that await_peer() are met by those
/// peers. Any other peer is rejected, and so is a peer that comes before it was named; it tries
/// again.
class DIWARP_EXPORT MeetingPoint {
 public:
  /// Port 0: a free one. Of the options, `max_requests` does not matter: no request waits. Throws
  /// Error(address_in_use) and the like.
  MeetingPoint(const Device& device, uint16_t port, const ListenOptions& options = {});

  Address address() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::MeetingPoint> impl_;
};

}  // namespace diwarp
