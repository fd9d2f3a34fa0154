// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "diwarp/types.h"

/// Queue pairs over connections (RC).
namespace diwarp {

/// The treatment of a message that finds no posted receive (RC).
enum class ReceiveNotReady : uint8_t {
  hold,       ///< nothing more is read from the connection until a receive is posted; if that takes
              ///< longer than `receive_wait`, the connection is terminated
  terminate,  ///< the connection is terminated at once, as RFC 5040 has it
};

/// The options that only RC queue pairs have.
struct StreamOptions {
  ReceiveNotReady receive_not_ready = ReceiveNotReady::hold;
  /// Also for a peer that has ended its side to take all.
  Duration receive_wait = std::chrono::seconds(60);
  /// Largest FPDU to send, in bytes, 128 to 65,536; 0: as one TCP segment carries. Larger ones
  /// cost less per byte and may be cut by TCP.
  uint32_t max_fpdu = 0;
  /// Sends and Writes are copied before their CRC is computed, as Read responses are, so that
  /// their memory may change before they complete: any byte is then sent as it was at some moment.
  /// Else the peer finds a wrong CRC, and ends the connection. For programs that were written for
  /// adapters, such as those that move memory while it is in use.
  bool copy_payload = false;
  /// A responder sends before the initiator's first FPDU has come, which RFC 5044 section 7.1.2
  /// forbids, where the connection has no ready-to-receive message. Linux's siw does so. For
  /// programs that were written for adapters, whose server may speak first.
  bool responder_begins = false;
  /// A connection on which nothing is outstanding ends when nothing came from the peer's TCP for so
  /// long, though it was probed (RFC 9293 section 3.8.4): 5 s to 18 h; zero: it is never probed. In
  /// whole seconds, and never later. An application that does not read ends nothing.
  Duration keep_alive = std::chrono::seconds(60);
  /// A connection with bytes that the peer's TCP has not acknowledged, or with a Read or an atomic
  /// that it has not answered, ends when nothing came from the peer's TCP for so long, and at least
  /// three retransmissions or probes got no answer (RFC 9293 section 3.8.3): 5 s to 18 h; zero:
  /// only as the system has it (net.ipv4.tcp_retries2). A peer's closed window ends nothing.
  Duration user_timeout = std::chrono::seconds(20);
};

}  // namespace diwarp
