// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "diwarp/connect_options.h"
#include "diwarp/connection_event.h"
#include "diwarp/detail/handle.h"
#include "diwarp/device.h"
#include "diwarp/error.h"
#include "diwarp/queue_pair.h"

/// Connections by events, in the manner of librdmacm: no call waits for a peer; the outcome is an
/// event (docs/rc.md). QueuePair::connect() and Listener are the forms that wait.
namespace diwarp {

namespace provider {
class CmEventChannel;
class CmId;
}  // namespace provider

struct CmEvent;

/// Where the events of ids go. One channel serves any number of ids, of several devices even.
class DIWARP_EXPORT CmEventChannel {
 public:
  CmEventChannel();

  /// The next event; nothing after `timeout` (negative: waits for ever). In manual mode it steps
  /// the ids' devices.
  std::optional<CmEvent> get_event(Duration timeout);

  /// Polls readable while events wait; at times when none does: use get_event(0) then.
  int descriptor() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::CmEventChannel> impl_;
};

/// One end of a connection that is, or will be, or a listener. Everything may be called from any
/// thread. A call that does not fit what was done before throws Error(invalid_state).
///
/// Destroying it rejects what waits for an answer, and moves the queue pair of a connection to the
/// error state; none of its events comes any more.
class DIWARP_EXPORT CmId {
 public:
  /// `context` comes back in its events.
  CmId(const Device& device, const CmEventChannel& channel, uint64_t context = 0);

  // --- The side that connects.

  /// Event: addr_resolved, or addr_error. After bind() the connection comes from that address and
  /// port. Throws Error(invalid_destination) where the device cannot speak to such an address.
  void resolve_addr(const Address& peer);
  /// Event: route_resolved, at once. May be left out.
  void resolve_route();
  /// `qp` is an RC queue pair in init. Event: established (the queue pair is in rts), rejected,
  /// unreachable (after the timeout) or connect_error; the queue pair is then still in init. Throws
  /// Error: invalid_argument, invalid_state.
  void connect(QueuePair& qp, const ConnectOptions& options = {});

  // --- The side that is connected to.

  /// The address and port to listen on, or to connect from; port 0: a free one. A device on all
  /// addresses has each of this host's, loopback addresses among them; of one that the host does
  /// not have listen() or the connection tells. Throws Error(invalid_argument) unless it is the
  /// device's.
  void bind(const Address& local);
  /// Events: connect_request, one for each peer that asks. Without bind() on a free port of the
  /// device's address. Throws Error(address_in_use) and the like.
  void listen(const ListenOptions& options = {});
  /// An id that came with a connect_request: answers yes. Event: established, on a peer-to-peer
  /// connection once the peer has made this side ready to send, else at once; or connect_error.
  /// Throws Error: connection_lost where the peer gave up, invalid_argument, invalid_state.
  void accept(QueuePair& qp, const AcceptOptions& options = {});
  /// Answers no.
  void reject(std::span<const std::byte> private_data = {});

  // --- Both.

  /// Ends the connection in order. Event: disconnected, when it has ended, at the latest after the
  /// timeout. Does nothing where it has ended already.
  void disconnect(const DisconnectOptions& options = {});

  /// From now on its events go to `channel`, where those that are not fetched yet come first, in
  /// their order; of a listener the requests as well. None is lost, and none comes twice. A call of
  /// get_event() that is returning may still hand one out of the old channel.
  void migrate(const CmEventChannel& channel);

  uint64_t number() const;  ///< unique in the process
  uint64_t context() const;
  void set_context(uint64_t context);
  Address local_address() const;
  Address peer_address() const;

 private:
  friend class detail::HandleAccess;
  explicit CmId(std::shared_ptr<provider::CmId> impl);
  detail::Handle<provider::CmId> impl_;
};

struct CmEvent : CmEventInfo {
  std::optional<CmId> request = {};  ///< connect_request: the id to answer with
};

}  // namespace diwarp
