// SPDX-License-Identifier: Apache-2.0
#include "rnic/rd_peer.h"

namespace diwarp::rnic {

bool RdPeer::awaited() const {
  if (association.state() == dgram::Association::State::opening) return true;
  return association.established() && (!sender.idle() || more_awaited());
}

RdPeer* RdPeers::find(const Address& address) {
  if (latest_ != nullptr && latest_->address() == address) return latest_;
  const auto found = peers_.find(address);
  if (found == peers_.end()) return nullptr;
  latest_ = found->second.get();
  return latest_;
}

RdPeer* RdPeers::find_or_add(const Address& address, Time now) {
  if (RdPeer* peer = find(address)) return peer;
  if (peers_.size() >= max_peers_) return nullptr;
  auto peer = std::make_unique<RdPeer>(owner_, address, window_);
  peer->last_heard = peer->last_used = now;
  latest_ = peer.get();
  peers_.emplace(address, std::move(peer));
  return latest_;
}

void RdPeers::erase(RdPeer& peer) {
  if (latest_ == &peer) latest_ = nullptr;
  const Address address = peer.address();
  peers_.erase(address);
}

void RdPeers::clear() {
  latest_ = nullptr;
  peers_.clear();
}

}  // namespace diwarp::rnic
