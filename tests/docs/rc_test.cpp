// SPDX-License-Identifier: Apache-2.0
// The blocks of docs/rc.md, run on loopback.
#include <atomic>
#include <future>
#include <map>
#include <optional>

#include "stack/cm_support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A program that serves connections as the document does, in a thread of its own.
class ServerOfDocument {
 public:
  ServerOfDocument() : device_(Device::open("127.0.0.1")), party_(device_) {
    party_.post_receives(4, 100);
    done_ = std::async(std::launch::async, [this] { serve(device_); });
  }
  ~ServerOfDocument() {
    serving_ = false;
    if (done_.valid()) done_.wait();
  }
  ServerOfDocument(const ServerOfDocument&) = delete;
  ServerOfDocument& operator=(const ServerOfDocument&) = delete;

  /// Where it listens; throws what ended it where it does not.
  Address address() {
    std::future<Address> announced = announced_.get_future();
    while (announced.wait_for(10ms) != std::future_status::ready)
      if (done_.wait_for(0ms) == std::future_status::ready) done_.get();
    return announced.get();
  }
  RcParty& party() { return party_; }
  /// Throws what ended it, if anything did.
  void stop() {
    serving_ = false;
    done_.get();
  }

 private:
  void serve(const Device& device) {
#include "rc/the-connection-manager.inc"
  }

  bool serving() const { return serving_; }
  void announce(const Address& address) { announced_.set_value(address); }
  QueuePair& queue_pair_for(const std::vector<std::byte>&) { return party_.qp; }

  Device device_;
  RcParty party_;
  std::atomic<bool> serving_{true};
  std::promise<Address> announced_;
  std::future<void> done_;
};

void check_message(CmClient& client, RcParty& server) {
  client.party.fill(text("there"));
  REQUIRE_FALSE(client.party.send(0, 5));
  REQUIRE(next(server.recv_cq).byte_count == 5);
}

}  // namespace

TEST_CASE("docs: a connection that was accepted lives on after the turn of the loop") {
  ServerOfDocument server;
  Device device = Device::open("127.0.0.1");
  CmClient client(device);
  client.connect(server.address());
  next_event(client.channel, CmEventType::established);
  check_message(client, server.party());
  // Events of other connections keep the loop turning.
  CmClient other(device);
  other.connect(client.id->peer_address());
  other.channel.get_event(kPatience);
  check_message(client, server.party());
  client.id->disconnect();
  next_event(client.channel, CmEventType::disconnected);
  REQUIRE(server.party().qp.wait_disconnected(kPatience));
  server.stop();
}

TEST_CASE("docs: a request waits for a peer that was named") {
  const Device device = Device::open("127.0.0.1");
  const Device device_of_peer = Device::open("127.0.0.1");
  RcParty party(device), peer(device_of_peer);
  const MeetingPoint point_of_peer(device_of_peer, 0);
  const Address peer_address = point_of_peer.address();
  const uint32_t peer_number = peer.qp.number();
  peer.post_receives(1, 1 << 16);
  const auto tell_peer = [&](const Address& address, uint32_t number) {
    peer.qp.await_peer({.address = address, .number = number});
    peer.qp.modify(QpState::rts);
  };
  QueuePair& qp = party.qp;
  const MemoryRegion& region = *party.mr;
#include "rc/named-peers.inc"
  CHECK(next(peer.recv_cq).byte_count == party.memory.size());
  CHECK(next(party.send_cq).status == WcStatus::success);
}
