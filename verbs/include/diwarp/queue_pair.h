// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "diwarp/attributes.h"
#include "diwarp/completion_queue.h"
#include "diwarp/detail/handle.h"
#include "diwarp/memory.h"
#include "diwarp/types.h"

namespace diwarp {

namespace rnic {
class QueuePair;
}

/// A queue pair. Creation leaves a UD queue pair in rts, ready for use, and an RC queue pair in
/// init, ready for receives and a connection. Everything may be called from any thread.
class DIWARP_EXPORT QueuePair {
 public:
  /// Throws Error if an argument is out of its range, the completion queues are of another device,
  /// or (UD) the port cannot be had.
  QueuePair(const ProtectionDomain& pd, const QueuePairInit& init);

  /// Posts a request of 0 bytes to 1 GiB. Never throws. Errors: queue_full (poll the send completion
  /// queue, then retry), invalid_state (not in rts or sqd), too_many_sges, inline_too_large,
  /// message_too_large, invalid_argument (SGEs or flags that the operation does not take),
  /// unsupported_operation (UD: all but Sends), invalid_destination (UD: no port, or the other
  /// address family), device_gone (a forked child).
  std::error_code post_send(const SendWorkRequest& request) noexcept;

  /// Posts a receive. Errors: queue_full, invalid_state (reset, closing, error), too_many_sges,
  /// message_too_large, unsupported_operation (it has a shared receive queue), device_gone.
  std::error_code post_recv(const ReceiveWorkRequest& request) noexcept;

  /// Moves the queue pair by hand: to reset (from any state but closing; drops what is posted and
  /// reports nothing), init (from reset), rts (UD: from init; RC: from rtr and sqd), sqd (RC, from
  /// rts), error (from any; flushes). Throws Error(invalid_state) otherwise.
  void modify(QpState state);

  /// RC: from init to rtr, with a TCP connection whose MPA start-up somebody else has done. Throws
  /// Error(invalid_state), or invalid_argument if the descriptor is no connected TCP socket.
  void modify_to_rtr(const StreamAttributes& stream);

  /// RC: connects to a listener and waits until it accepts; the queue pair is then in rts. Returns
  /// the private data of the reply. Throws Error: timed_out, rejected (RejectedError, with the
  /// private data of the reject), connection_lost, protocol_error (the peer is not MPA), or the
  /// system's own error.
  std::vector<std::byte> connect(const Address& peer, const ConnectOptions& options = {});

  /// RC: MPA's start-up on a connected TCP descriptor, over which both sides may have exchanged bytes
  /// of their own before. One side calls connect_on(), the other accept_on(). Unless it is no
  /// connected TCP socket the descriptor is the queue pair's from then on, even if the start-up
  /// fails. The peer is asked once, in the revision that the options have. Otherwise as connect().
  std::vector<std::byte> connect_on(int descriptor, const ConnectOptions& options = {});
  /// The responder's side: waits for the peer's request, up to `timeout` (negative: a year), accepts
  /// it, and returns its private data. Throws Error: timed_out, connection_lost, protocol_error.
  std::vector<std::byte> accept_on(int descriptor, const AcceptOptions& options = {},
                                   Duration timeout = std::chrono::seconds(5));

  /// RC: ends the connection in order: what was posted goes out, then the stream is closed, and
  /// once the peer closed its side too (or the timeout ended it) what is left is flushed and the
  /// state is error. Blocks until then.
  void disconnect(const DisconnectOptions& options = {});

  /// RC: waits until the peer or an error ended the connection. False after `timeout`.
  bool wait_disconnected(Duration timeout);

  uint32_t number() const;
  QpState state() const;
  /// UD: where peers send to. RC: the local end of the connection.
  Address address() const;
  QueuePairAttributes query() const;
  /// UD: changes the pacing of what is sent from now on, in bytes a second; 0: no limit.
  void set_max_rate(uint64_t bytes_per_second);

  const std::shared_ptr<rnic::QueuePair>& impl() const { return impl_.shared(); }

 private:
  detail::Handle<rnic::QueuePair> impl_;
};

}  // namespace diwarp
