// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "diwarp/attributes.h"
#include "diwarp/completion_queue.h"
#include "diwarp/connect_options.h"
#include "diwarp/datagram_options.h"
#include "diwarp/detail/handle.h"
#include "diwarp/memory.h"
#include "diwarp/queue_options.h"
#include "diwarp/reliable_options.h"
#include "diwarp/shared_receive_queue.h"
#include "diwarp/stream_options.h"
#include "diwarp/types.h"

namespace diwarp {

namespace provider {
class QueuePair;
}

/// The parameters of a new queue pair.
struct QueuePairInit {
  QpType type = QpType::rc;
  CompletionQueueRef send_cq;
  CompletionQueueRef recv_cq;
  QueuePairCapacity capacity = {};
  DatagramOptions datagram = {};
  /// Every send gets a completion, whatever its flags.
  bool signal_all = false;
  /// RC: takes receives from here instead of from a queue of its own.
  SharedReceiveQueueRef srq = {};
  StreamOptions stream = {};
  ReliableOptions reliable = {};
  /// RC: the queue pair's number, from kLeastRcNumber to kMaxRcNumber; 0: one that is free. (The
  /// number of a UD or RD queue pair is its port.)
  uint32_t number = 0;
};

/// A destination that was checked once: an address and port that queue pairs of a protection domain
/// can reach. Stands for its Address in requests.
class DIWARP_EXPORT AddressHandle {
 public:
  /// Throws Error(invalid_destination) if the port is 0, the address is none that can be sent to,
  /// or of a family that the device does not have.
  AddressHandle(const ProtectionDomain& pd, const Address& destination);
  const Address& address() const { return address_; }
  operator const Address&() const { return address_; }  // NOLINT: meant to convert

 private:
  Address address_;
};

/// A queue pair. Creation leaves a UD or RD queue pair in rts, ready for use, and an RC queue pair
/// in init, ready for receives and a connection. Everything may be called from any thread.
class DIWARP_EXPORT QueuePair {
 public:
  /// Throws Error if an argument is out of its range, the completion queues are of another device,
  /// (UD) the port cannot be had, or (RC) another queue pair of the device has the number:
  /// address_in_use.
  QueuePair(const ProtectionDomain& pd, const QueuePairInit& init);

  /// Posts a request of 0 bytes to 1 GiB. Never throws. In error, and in closing, it is not begun:
  /// it completes with wr_flush_error after all that was posted before. Errors: queue_full (poll
  /// the send completion queue, then retry), invalid_state (reset, init, rtr), too_many_sges,
  /// inline_too_large, message_too_large, invalid_argument (SGEs, flags or immediate data that the
  /// operation does not take, or tagged offsets beyond 2^64), unsupported_operation (not for this
  /// type of queue pair; atomics over datagrams: docs/datagrams.md), invalid_destination (UD, RD:
  /// no port, the other address family, or a group where there must be one peer), device_gone (a
  /// forked child), moved_from (this handle was moved to another).
  std::error_code post_send(const SendWorkRequest& request) noexcept;

  /// Posts several requests in order, as one: they are begun when all are posted, so that small
  /// messages to one peer leave in few system calls. Stops at the first that cannot be posted and
  /// returns its error, as post_send() has them; `posted` says how many went before it.
  std::error_code post_sends(std::span<const SendWorkRequest> requests, size_t& posted) noexcept;

  /// Posts all requests of a list, in order, or none of them where one cannot be posted: then it
  /// returns that one's error, as post_send() has them. unsupported_operation: hardware devices.
  std::error_code post_all_sends(std::span<const SendWorkRequest> requests) noexcept;

  /// UD, RD: posts a Write-Record (datagram-iWARP, section IV.B.3): writes into the peer's memory
  /// and has the peer told, with a map of the bytes that are valid there. The same as post_send()
  /// with WrOpcode::write_record.
  std::error_code post_write_record(const WriteRecordWorkRequest& request) noexcept;

  /// UD, RD: posts a Read of the peer's memory. The same as post_send() with WrOpcode::rdma_read.
  std::error_code post_read(const ReadWorkRequest& request) noexcept;

  /// Posts a receive; in error and in closing it is flushed, as a send is. Errors: queue_full,
  /// invalid_state (reset), too_many_sges, message_too_large, unsupported_operation (it has a
  /// shared receive queue), device_gone, moved_from.
  std::error_code post_recv(const ReceiveWorkRequest& request) noexcept;

  /// Posts several receives in order; the engine is told of them once. Stops at the first that
  /// cannot be posted and returns its error, as post_recv() has them; `posted` says how many went
  /// before it.
  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests, size_t& posted) noexcept;

  /// Moves the queue pair by hand: to reset (from any state but closing; drops what is posted and
  /// reports nothing), init (from reset), rts (UD: from init; RC: from rtr and sqd), sqd (RC, from
  /// rts), error (from any; flushes). Throws Error(invalid_state) otherwise.
  void modify(QpState state);

  /// RC: from init to rtr, with a TCP connection whose MPA start-up other code has done. Throws
  /// Error(invalid_state), or invalid_argument if the descriptor is no connected TCP socket.
  void modify_to_rtr(const StreamAttributes& stream);

  /// RC: from init to rtr without a connection, whose peer is named; modify() then leads to rts at
  /// once. Sends wait in the queue until the connection has come underneath: the peer is to do the
  /// same, in any order, and one of both devices, or both, have a MeetingPoint (docs/rc.md says
  /// which). If it has not come after the timeout, the oldest send gets retry_exceeded, the rest is
  /// flushed, the state is error, and an event qp_fatal has the status timed_out. disconnect(), and
  /// any move to reset or error, end the wait. Throws Error: invalid_state, invalid_argument,
  /// invalid_destination.
  void await_peer(const NamedPeer& peer);
  /// How long from now that peer may take to come, in place of NamedPeer::timeout. Does nothing
  /// where it has come, or is not awaited. Throws Error(invalid_argument) where that is not above
  /// zero.
  void limit_peer_wait(Duration timeout);

  /// RC: connects to a listener and waits until it accepts; the queue pair is then in rts. Returns
  /// the private data of the reply. Throws Error: timed_out, rejected (RejectedError, with the
  /// private data of the reject), connection_lost, protocol_error (the peer is not MPA), or the
  /// system's own error.
  std::vector<std::byte> connect(const Address& peer, const ConnectOptions& options = {});

  /// RC: MPA's start-up on a connected TCP descriptor, over which both sides may have exchanged
  /// bytes of their own before. One side calls connect_on(), the other accept_on(). Unless it is no
  /// connected TCP socket the descriptor is the queue pair's from then on, even if the start-up
  /// fails. The peer is asked once, in the revision that the options have. Otherwise as connect().
  std::vector<std::byte> connect_on(int descriptor, const ConnectOptions& options = {});
  /// The responder's side: waits for the peer's request, up to `timeout` (negative: a year),
  /// accepts it, and returns its private data. Throws Error: timed_out, connection_lost,
  /// protocol_error.
  std::vector<std::byte> accept_on(int descriptor, const AcceptOptions& options = {},
                                   Duration timeout = std::chrono::seconds(5));

  /// RC: ends the connection in order: posted requests go out, then the stream is closed, and once
  /// the peer closed its side too (or the timeout ended it) the rest is flushed and the
  /// state is error. Blocks until then. While a named peer is awaited nothing goes out: all is
  /// flushed at once.
  void disconnect(const DisconnectOptions& options = {});

  /// RC: waits until the peer or an error ended the connection. False after `timeout`.
  bool wait_disconnected(Duration timeout);

  uint32_t number() const;
  QpState state() const;
  /// UD: where peers send to. RC: the local end of the connection.
  Address address() const;
  QueuePairAttributes query() const;
  /// The same, with the `max_datagram_payload` that goes to `destination`, whose port does not
  /// matter. Throws Error(invalid_destination) if it is of another address family than the device.
  QueuePairAttributes query(const Address& destination) const;
  /// UD: from now on also takes what is sent to a group: a multicast address, or the limited or a
  /// subnet's broadcast address, with a port of its own or, where that is 0, the queue pair's.
  /// Other queue pairs may join the same group on the same port. `interface` is a name; empty: that
  /// of the device's address, or the system's choice. Throws Error (invalid_argument;
  /// address_in_use where another program, or a queue pair on all addresses, has the port; the
  /// system's own).
  void join(const Address& group, std::string_view interface = {});
  /// Ends that, of the same group, port and interface. Throws Error(invalid_argument) if it was not
  /// joined.
  void leave(const Address& group, std::string_view interface = {});

  /// UD, RD: the sources to listen to from now on; empty: all.
  void set_sources(std::span<const SourceFilter> sources);

  /// UD, RD: the oldest entry of the error queue, which it leaves; nothing if there is none.
  std::optional<DatagramError> poll_error();

  /// UD, RD: the Write-Records that are open now, each with what is valid by now.
  std::vector<OpenRecord> open_records() const;

  /// RD: the peers that it knows now.
  std::vector<ReliablePeer> peers() const;

  /// Which accesses peers have to memory through this queue pair, of those that the memory itself
  /// allows: a combination of remote_write, remote_read and remote_atomic. At first all. Others
  /// fail as accesses that the memory does not allow. Throws Error(unsupported_operation) on
  /// hardware devices.
  void set_remote_access(Access accesses);

  /// UD, RD: changes DatagramOptions::q_key, of which a peer may learn before the queue pair is
  /// ready. Throws Error(invalid_state) in any other state than reset and init.
  void set_q_key(uint32_t q_key);

  /// UD, RD: changes the pacing of what is sent from now on, in bytes a second; 0: no limit.
  void set_max_rate(uint64_t bytes_per_second);

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::QueuePair> impl_;
};

}  // namespace diwarp
