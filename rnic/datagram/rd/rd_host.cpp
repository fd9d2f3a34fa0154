// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_host.h"

#include "rnic/datagram/rd/rd_peer.h"

namespace diwarp::rnic {

void RdHost::hold_receive() {
  context_.shares.hold(share_);
  ++held_;
  if (linked()) context_.waiting.move_to_back(*this);
}

void RdHost::give_back_receive() {
  context_.shares.give_back(share_);
  --held_;
  if (linked() && holds_none()) context_.waiting.move_to_back(*this);
}

void RdShareQueue::add(RdPeer& peer) {
  RdHost& host = peer.host;
  host.waiters_.push_back(peer);
  if (!host.linked()) place_of(host).push_back(host);
}

RdPeer* RdShareQueue::next(size_t available) {
  if (available == 0 || !shares_.may_hold(available)) return nullptr;  // guard(rd-receive-shares)
  RdPeer* const first = next_of(without_, available);
  return first != nullptr ? first : next_of(with_, available);
}

RdPeer* RdShareQueue::next_of(Hosts& hosts, size_t available) {
  RdHost* host = hosts.front();
  while (host != nullptr) {
    RdHost* const following = hosts.next(*host);
    if (host->waiters_.empty())
      hosts.remove(*host);
    else if (host->may_hold(available))
      return host->waiters_.front();
    host = following;
  }
  return nullptr;
}

void RdShareQueue::move_to_back(RdHost& host) {
  host.unlink();
  place_of(host).push_back(host);
}

}  // namespace diwarp::rnic
