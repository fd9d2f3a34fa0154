// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "diwarp/types.h"

/// Queue pairs over reliable datagrams (RD).
namespace diwarp {

/// The effect of an error at one peer of an RD queue pair.
enum class ErrorScope : uint8_t {
  peer,        ///< fails that peer's work only
  queue_pair,  ///< moves the queue pair to the error state
};

/// In which order an RD queue pair reports what was sent (docs/datagrams.md).
enum class CompletionOrder : uint8_t {
  posting,  ///< that of posting, whatever the peers: a slow one holds up the completions of all
  peer,     ///< that of posting among the requests to one peer: a slow one holds up its own
};

/// How an RD queue pair finds the rate at which it sends (docs/reliable.md).
enum class CongestionControl : uint8_t {
  bbr,    ///< by the measured rate of delivery and round trip, after BBR: chance losses do not slow
          ///< it, full queues do
  cubic,  ///< by what is lost, as TCP's CUBIC does (RFC 9438): each loss slows it
};

/// The options that only RD queue pairs have.
struct ReliableOptions {
  /// A peer that answers nothing for so long while something is awaited of it is given up.
  Duration peer_timeout = std::chrono::seconds(10);
  /// How often a silent peer of which something is awaited is asked for a sign of life.
  Duration keep_alive = std::chrono::seconds(1);
  /// A peer with which nothing was exchanged for so long is forgotten.
  Duration idle_timeout = std::chrono::seconds(60);
  /// Peers at once, in all and at one address with whatever port; more strangers are not answered,
  /// and sends to more fail with retry_exceeded. The share of an address is so large that a host's
  /// queue pairs find room, and so small that one host cannot fill the table. At least 1 each.
  uint32_t max_peers = 16384;
  uint32_t max_peers_per_address = 4096;
  /// A Send of several segments of which nothing new arrives for so long fails at both ends, and
  /// its receive is used again; 0: as long as peer_timeout. Sends that are not whole hold at most
  /// half of the posted receives in all, and half of these from one address; the next one waits.
  /// After the same time without a delivery, early datagrams that wait for one that is missing are
  /// dropped, and the peer begins anew.
  Duration message_timeout = Duration::zero();
  /// Datagrams that a peer may have on the way to this queue pair: by default as many as an
  /// acknowledgement can tell of one by one. Where datagrams are lost, several times what is on the
  /// way in a round trip has room in it, as some need several attempts.
  uint32_t receive_window = 4096;
  /// Memory for datagrams that came out of order or found no receive, and for the lists of them, of
  /// all peers, in bytes.
  size_t max_buffer = size_t{64} << 20;
  /// Memory of all peers, in bytes, for what was sent and is not acknowledged, beyond 16 datagrams
  /// to each; 57 bytes for each datagram. While it is used up, no more than these 16 are on the
  /// way.
  size_t max_sent_memory = size_t{64} << 20;
  ErrorScope error_scope = ErrorScope::peer;
  CompletionOrder completion_order = CompletionOrder::posting;
  CongestionControl congestion_control = CongestionControl::bbr;
  /// A file for each transmission to the first peer and each acknowledgement of it, one line each,
  /// to find out why a connection is slow (docs/reliable.md); empty: none. The queue pair waits for
  /// the disk. One queue pair for each file.
  std::string transmission_log = {};
};

}  // namespace diwarp
