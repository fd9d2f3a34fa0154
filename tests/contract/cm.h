// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "contract/pair.h"

/// Ids and channels of the connection manager.
namespace diwarp::contract {

/// The next event, which must come and be of this type.
inline CmEvent next_event(CmEventChannel& channel, CmEventType wanted) {
  std::optional<CmEvent> event = channel.get_event(kPatience);
  REQUIRE(event);
  INFO(event->message);
  REQUIRE(to_string(event->type) == to_string(wanted));
  return std::move(*event);
}

/// A listening id on the peer's device, and a queue pair to accept with.
struct CmServer {
  static constexpr uint64_t kContext = 7;
  CmServer() { listener.listen(); }
  CmEvent request() { return next_event(channel, CmEventType::connect_request); }

  Device device = open_peer();
  Party party{device};
  CmEventChannel channel;
  CmId listener{device, channel, kContext};
};

/// An id on the device under test that connects, with a channel of its own.
struct CmClient {
  static constexpr uint64_t kContext = 42;
  void resolve(const Address& peer) {
    id->resolve_addr(peer);
    next_event(channel, CmEventType::addr_resolved);
    id->resolve_route();
    next_event(channel, CmEventType::route_resolved);
  }
  void connect(const Address& peer, ConnectOptions options = {}) {
    options.timeout = kPatience;
    resolve(peer);
    id->connect(party.qp, options);
  }

  Device device = open_device();
  Party party{device};
  CmEventChannel channel;
  std::optional<CmId> id{std::in_place, device, channel, kContext};
};

/// Both sides established.
struct CmCouple {
  CmCouple() {
    client.connect(server.listener.local_address());
    accepted.emplace(std::move(*server.request().request));
    accepted->accept(server.party.qp);
    next_event(client.channel, CmEventType::established);
    next_event(server.channel, CmEventType::established);
  }

  CmServer server;
  CmClient client;
  std::optional<CmId> accepted;
};

}  // namespace diwarp::contract
