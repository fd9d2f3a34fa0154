// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "diwarp/completion_queue.h"
#include "diwarp/detail/handle.h"
#include "diwarp/memory.h"
#include "diwarp/types.h"

namespace diwarp {

namespace rnic {
class QueuePair;
}

/// Names a completion queue in QueuePairInit; made from a CompletionQueue.
class CompletionQueueRef {
 public:
  CompletionQueueRef() = default;
  CompletionQueueRef(const CompletionQueue& cq) : impl_(cq.impl()) {}  // NOLINT: meant to convert
  const std::shared_ptr<rnic::CompletionQueue>& impl() const { return impl_; }

 private:
  std::shared_ptr<rnic::CompletionQueue> impl_;
};

/// How large a queue pair is. Queue depths are rounded up to a power of two.
struct QueuePairCapacity {
  uint32_t max_send_wr = 128;
  uint32_t max_recv_wr = 128;
  uint32_t max_send_sge = 4;
  uint32_t max_recv_sge = 4;
  uint32_t max_inline_data = 64;  ///< bytes
};

/// What only UD queue pairs have.
struct DatagramOptions {
  /// UDP port, which is also the queue pair's number; 0: a free one.
  uint16_t port = 0;
  /// A bound UDP descriptor to use instead of opening one; the queue pair owns it afterwards.
  int descriptor = -1;
  /// Messages with another Q_Key are dropped.
  uint32_t q_key = 0;
  /// Largest UDP payload to send, headers and CRC included; 0: what the path MTU carries. 64 to
  /// 65,507.
  uint32_t segment = 0;
  /// Sends at most this many bytes a second (payload of UDP); 0: no limit. The burst that pacing
  /// lets through at once is what the rate gives in 1 ms, at least one segment.
  uint64_t max_rate = 0;
  /// A message of which nothing new arrives for so long is given up and its receive is used again.
  Duration message_timeout = std::chrono::milliseconds(100);
  /// Messages of several segments that may be incomplete at once, in all and from one source. They
  /// never hold more than half of the posted receives.
  uint32_t max_open_messages = 64;
  uint32_t max_open_per_source = 16;
  /// Sources whose delivered messages are remembered (against duplicates). About 100 bytes each.
  uint32_t max_sources = 16384;
};

struct QueuePairInit {
  QpType type = QpType::rc;
  CompletionQueueRef send_cq;
  CompletionQueueRef recv_cq;
  QueuePairCapacity capacity = {};
  DatagramOptions datagram = {};
  /// Every send gets a completion, whatever its flags.
  bool signal_all = false;
};

struct QueuePairAttributes {
  QpType type = QpType::rc;
  QpState state = QpState::reset;
  uint32_t number = 0;  ///< 24 bits
  QueuePairCapacity capacity;
  Address local_address;
  Address peer_address;      ///< RC, once connected
  uint32_t q_key = 0;        ///< UD
  uint64_t max_rate = 0;     ///< UD
  uint32_t posted_sends = 0;
  uint32_t posted_receives = 0;
};

struct ConnectOptions {
  /// Up to 512 bytes that the listener sees in its ConnectionRequest (RFC 5044 section 7.1).
  std::span<const std::byte> private_data = {};
  /// How long resolving, TCP's handshake and the MPA reply may take together.
  Duration timeout = std::chrono::seconds(10);
  /// Ask for CRCs. They are used if either side asks.
  bool crc = true;
};

struct DisconnectOptions {
  /// How long what was posted may take to go out, and the peer to close its side.
  Duration timeout = std::chrono::seconds(5);
};

/// A queue pair. Creation leaves a UD queue pair in rts, ready for use, and an RC queue pair in
/// init, ready for receives and a connection. Everything may be called from any thread.
class DIWARP_EXPORT QueuePair {
 public:
  /// Throws Error if an argument is out of its range, the completion queues are of another device,
  /// or (UD) the port cannot be had.
  QueuePair(const ProtectionDomain& pd, const QueuePairInit& init);

  /// Posts a Send of 0 bytes to 1 GiB. Never throws. Errors: queue_full (poll the send completion
  /// queue, then retry), invalid_state (not in rts), too_many_sges, inline_too_large,
  /// message_too_large, invalid_destination (UD: no port, or the other address family),
  /// device_gone (a forked child).
  std::error_code post_send(const SendWorkRequest& request) noexcept;

  /// Posts a receive. Errors: queue_full, invalid_state (needs init or rts), too_many_sges,
  /// message_too_large, device_gone.
  std::error_code post_recv(const ReceiveWorkRequest& request) noexcept;

  /// Moves the queue pair by hand: to reset (from any state but closing; drops what is posted and
  /// reports nothing), init (from reset), rts (UD, from init), error (from any; flushes). Throws
  /// Error(invalid_state) otherwise.
  void modify(QpState state);

  /// RC: connects to a listener and waits until it accepts; the queue pair is then in rts. Returns
  /// the private data of the reply. Throws Error: timed_out, rejected (RejectedError, with the
  /// private data of the reject), connection_lost, protocol_error (the peer is not MPA), or the
  /// system's own error.
  std::vector<std::byte> connect(const Address& peer, const ConnectOptions& options = {});

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
