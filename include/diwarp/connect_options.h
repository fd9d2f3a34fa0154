// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/types.h"

/// How connections come to be, and end.
namespace diwarp {

/// The event that makes the responder of a connection ready to send (RFC 6581 section 4): a first
/// message of the initiator, of no length, that no application sees.
enum class ReadyToReceive : uint8_t { none, send, write, read };

/// A connection over an established TCP connection whose MPA start-up other code has done.
struct StreamAttributes {
  int descriptor = -1;    ///< of the TCP connection; the queue pair owns it afterwards
  bool initiator = true;  ///< of MPA; only the initiator may send first
  bool crc = true;
  bool send_markers = false;
  bool receive_markers = false;
  uint16_t ord = 16;
  uint16_t ird = 16;
  ReadyToReceive ready = ReadyToReceive::none;
  /// As for ConnectOptions.
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

/// The private data of a connection request or reply: a copy of bytes.
class PrivateData {
 public:
  PrivateData() = default;
  template <std::convertible_to<std::span<const std::byte>> Bytes>
  PrivateData(const Bytes& bytes) : PrivateData(std::span<const std::byte>(bytes)) {}  // NOLINT
  PrivateData(std::span<const std::byte> bytes)  // NOLINT: meant to convert
      : bytes_(bytes.begin(), bytes.end()) {}
  const std::byte* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  auto begin() const { return bytes_.begin(); }
  auto end() const { return bytes_.end(); }

 private:
  std::vector<std::byte> bytes_;
};

struct ConnectOptions {
  /// Up to 508 bytes (512 with revision 1) that the listener sees in its ConnectionRequest (RFC
  /// 5044 section 7.1, RFC 6581 section 9).
  PrivateData private_data = {};
  /// How long resolving, TCP's handshake and the MPA reply may take together.
  Duration timeout = std::chrono::seconds(10);
  /// How long, within the timeout, a peer that refuses the connection, or ends it without a byte,
  /// is tried again and again: some programs tell their port a moment before they listen, and a
  /// port that is forwarded takes connections at once. Not on hardware.
  Duration retry_refused = Duration::zero();
  /// Ask for CRCs. They are used if either side asks.
  bool crc = true;
  /// MPA's revision, 1 or 2 (RFC 6581). A responder answers in the initiator's.
  uint8_t revision = 2;
  /// Revision 2: the responder is made ready to send with a message of no length that no
  /// application sees, so that either application may send first.
  bool peer_to_peer = true;
  /// Revision 2: ask once more in revision 1, within the timeout, where the peer answers in that or
  /// closes the connection without an answer. The connection is then not peer-to-peer.
  bool fallback = true;
  /// Ask the peer to send markers (RFC 5044 section 4.3).
  bool markers = false;
  /// Reads and atomics that this side wants outstanding, and those of the peer that it answers at a
  /// time: 0 to 16,382. The connection has what both sides can do; revision 1 does not negotiate.
  uint16_t ord = 16;
  uint16_t ird = 16;
  /// Of this connection, instead of those of the queue pair's StreamOptions.
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

/// The peer of an RC queue pair that is named, and not connected to: QueuePair::await_peer().
struct NamedPeer {
  /// Where the peer is: the address of its device, and the port of a MeetingPoint there, or, where
  /// the peer is the one that connects, any port above 0.
  Address address = {};
  uint32_t number = 0;  ///< of the peer's queue pair
  /// The address by which the peer names this side (its port does not matter); any: the device's,
  /// or, of a device on all addresses, the one from which the peer is reached.
  Address source = {};
  /// How long the connection may take to come.
  Duration timeout = std::chrono::seconds(10);
  /// As for ConnectOptions.
  bool crc = true;
  uint16_t ord = 16;
  uint16_t ird = 16;
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

struct DisconnectOptions {
  /// How long what was posted may take to go out, and the peer to close its side.
  Duration timeout = std::chrono::seconds(5);
};

/// The resources that a peer that asks for a connection has for this side, and those it wants.
struct RequestedDepths {
  uint16_t ord = 16382;  ///< Reads and atomics that it answers at a time; 16,382: it did not say
  uint16_t ird = 16382;  ///< Reads and atomics that it wants outstanding; 16,382: it did not say
};

struct AcceptOptions {
  /// Up to 508 bytes (512 where the peer speaks revision 1) that connect() returns at the peer.
  PrivateData private_data = {};
  /// Use CRCs even if the peer does not ask for them.
  bool crc = true;
  /// As for ConnectOptions.
  bool markers = false;
  uint16_t ord = 16;
  uint16_t ird = 16;
  std::optional<Duration> keep_alive = {};
  std::optional<Duration> user_timeout = {};
};

struct ListenOptions {
  int backlog = 128;
  /// On "::" IPv4 connections come as well, unless this is set.
  bool ipv6_only = false;
  /// Connections whose MPA request has not come whole yet, in all and from one address: 1 to 4,096.
  /// When one more comes, the oldest of them is closed, of that address if its share is used up.
  uint32_t max_startups = 256;
  uint32_t max_startups_per_address = 64;
  /// A peer that has not sent its whole MPA request by then is dropped (RFC 5044 section 7.1).
  Duration request_timeout = std::chrono::seconds(5);
  /// Requests that may wait for get_request(), or as events; more are rejected.
  size_t max_requests = 1024;
};

}  // namespace diwarp
