// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "diwarp/connection_manager.h"
#include "stack/rc_support.h"

/// The common part of the tests of the connection manager.
namespace diwarp::test {

inline CmEvent next_event(CmEventChannel& channel, CmEventType expected) {
  std::optional<CmEvent> event = channel.get_event(kPatience);
  REQUIRE(event);
  INFO(event->message);
  REQUIRE(to_string(event->type) == to_string(expected));
  return std::move(*event);
}

/// A listening id, and what it takes to accept with.
struct CmServer {
  explicit CmServer(const DeviceOptions& options = {}, const ListenOptions& listen = {})
      : device(Device::open("127.0.0.1", options)), party(device), listener(device, channel, 7) {
    listener.bind(Address::parse("127.0.0.1"));
    listener.listen(listen);
  }
  CmEvent request() { return next_event(channel, CmEventType::connect_request); }

  Device device;
  RcParty party;
  CmEventChannel channel;
  CmId listener;
};

/// An id that connects, with its own channel.
struct CmClient {
  explicit CmClient(const Device& device) : party(device), id(std::in_place, device, channel, 42) {}

  void resolve(const Address& peer) {
    id->resolve_addr(peer);
    next_event(channel, CmEventType::addr_resolved);
    id->resolve_route();
    next_event(channel, CmEventType::route_resolved);
  }
  void connect(const Address& peer, const ConnectOptions& options = {}) {
    resolve(peer);
    id->connect(party.qp, options);
  }

  RcParty party;
  CmEventChannel channel;
  std::optional<CmId> id;
};

/// Both sides established.
struct CmCouple {
  explicit CmCouple(const DeviceOptions& options = {}, const ConnectOptions& asks = {})
      : server(options), client_device(Device::open("127.0.0.1")), client(client_device) {
    client.connect(server.listener.local_address(), asks);
    CmEvent event = server.request();
    accepted.emplace(std::move(*event.request));
    accepted->accept(server.party.qp);
    next_event(client.channel, CmEventType::established);
    next_event(server.channel, CmEventType::established);
  }

  CmServer server;
  Device client_device;
  CmClient client;
  std::optional<CmId> accepted;
};

inline void check_one_way(RcParty& a, RcParty& b) {
  b.post_receives(1, 100);
  a.fill(text("there"));
  REQUIRE_FALSE(a.send(0, 5));
  REQUIRE(next(b.recv_cq).byte_count == 5);
  CHECK(same(b.bytes(0, 5), text("there")));
}

inline void check_quiet(CmEventChannel& channel) { CHECK_FALSE(channel.get_event(20ms)); }

}  // namespace diwarp::test
