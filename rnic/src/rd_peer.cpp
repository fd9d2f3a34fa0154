// SPDX-License-Identifier: Apache-2.0
#include "rnic/rd_peer.h"

#include <new>
#include <utility>

#include "base/siphash.h"

namespace diwarp::rnic {

bool RdPeer::awaited() const {
  if (association.state() == dgram::Association::State::opening) return true;
  return association.established() && (!sender.idle() || more_awaited());
}

RdPeers::RdPeers(RdTimerOwner& owner, const ReliableOptions& options)
    : owner_(owner),
      max_peers_(options.max_peers),
      max_per_address_(options.max_peers_per_address),
      window_(options.receive_window),
      hosts_(0, KeyedHash<Address>(random_sip_key())),
      peers_(0, KeyedHash<Address>(random_sip_key())) {}

RdPeer* RdPeers::find(const Address& address) {
  if (latest_ != nullptr && latest_->address() == address) return latest_;
  const auto found = peers_.find(address);
  if (found == peers_.end()) return nullptr;
  latest_ = found->second.get();
  return latest_;
}

RdPeer* RdPeers::find_by_epoch(const Address& address, uint32_t epoch) {
  RdPeer* const newest = find(address);
  RdPeer* peer = newest;
  while (peer != nullptr && peer->association.epoch() != epoch) peer = peer->older_.get();
  return peer != nullptr ? peer : newest;
}

RdPeer* RdPeers::find_by_incarnation(const Address& address, uint32_t incarnation) {
  RdPeer* const newest = find(address);
  RdPeer* peer = newest;
  while (peer != nullptr && (!peer->association.established() ||
                             peer->association.peer_incarnation() != incarnation))
    peer = peer->older_.get();
  return peer != nullptr ? peer : newest;
}

/// Null where there is no room. Throws std::bad_alloc, and has changed nothing then.
std::unique_ptr<RdPeer> RdPeers::make(const Address& address, Time now) {
  if (size_ >= max_peers_) return nullptr;
  RdHost& host = hosts_[address.with_port(0)];
  if (host.peers >= max_per_address_) return nullptr;
  return std::make_unique<RdPeer>(owner_, host, address, window_, now);
}

RdPeer* RdPeers::find_or_add(const Address& address, Time now) try {
  if (RdPeer* peer = find(address)) return peer;
  std::unique_ptr<RdPeer> peer = make(address, now);
  if (!peer) return nullptr;
  latest_ = peer.get();
  peers_.emplace(address, std::move(peer));
  ++latest_->host.peers;
  ++size_;
  return latest_;
} catch (const std::bad_alloc&) {
  latest_ = nullptr;
  return nullptr;
}

RdPeer* RdPeers::add_beside(RdPeer& present, Time now) try {
  uint32_t incarnations = 0;
  std::unique_ptr<RdPeer>& newest = peers_.find(present.address())->second;
  for (RdPeer* peer = newest.get(); peer != nullptr; peer = peer->older_.get()) ++incarnations;
  if (incarnations >= kMaxIncarnations) return nullptr;
  std::unique_ptr<RdPeer> peer = make(present.address(), now);
  if (!peer) return nullptr;
  peer->older_ = std::move(newest);
  newest = std::move(peer);
  latest_ = newest.get();
  ++latest_->host.peers;
  ++size_;
  return latest_;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void RdPeers::erase(RdPeer& peer) {
  latest_ = nullptr;
  const Address address = peer.address();
  RdHost& host = peer.host;
  const auto found = peers_.find(address);
  std::unique_ptr<RdPeer>* place = &found->second;
  while (place->get() != &peer) place = &(*place)->older_;
  std::unique_ptr<RdPeer> rest = std::move(peer.older_);
  *place = std::move(rest);
  if (!found->second) peers_.erase(found);
  --size_;
  if (--host.peers == 0) hosts_.erase(address.with_port(0));
}

void RdPeers::clear() {
  latest_ = nullptr;
  peers_.clear();
  hosts_.clear();
  size_ = 0;
}

}  // namespace diwarp::rnic
