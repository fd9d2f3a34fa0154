// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_peer.h"

#include <new>
#include <utility>

#include "base/siphash.h"

namespace diwarp::rnic {

RdPeerLimits RdPeerLimits::of(const provider::QueuePairInit& init) {
  return {.peers = init.reliable.max_peers,
          .per_address = init.reliable.max_peers_per_address,
          .window = init.reliable.receive_window,
          .congestion_control = init.reliable.congestion_control,
          .closed_records = init.datagram.closed_per_source,
          .refused_records = init.datagram.refused_per_source,
          .record_memory = init.datagram.max_source_memory};
}

RdPeers::RdPeers(RdPeerOwner& owner, ReceiveShares& shares, const provider::QueuePairInit& init)
    : without_share(shares),
      context_{owner, without_share, shares},
      limits_(RdPeerLimits::of(init)),
      record_memory_(limits_.record_memory),
      // guard(counted-keys): hosts_(0, KeyedHash<Address>(random_sip_key())) => hosts_(0,
      //     KeyedHash<Address>(SipKey{}))
      hosts_(0, KeyedHash<Address>(random_sip_key())),
      // guard(drawn-keys): peers_(0, KeyedHash<Address>(random_sip_key())) => peers_(0,
      //     KeyedHash<Address>(SipKey{}))
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
  while (peer != nullptr && peer->handshake().epoch() != epoch) peer = peer->older_.get();
  return peer != nullptr ? peer : newest;
}

RdPeer* RdPeers::find_incarnation(const Address& address, uint32_t incarnation) {
  RdPeer* peer = find(address);
  // guard(rd-incarnations): condition => peer != nullptr && false
  while (peer != nullptr && peer->source.key.incarnation != incarnation) peer = peer->older_.get();
  return peer;
}

/// Null where there is no room. Throws std::bad_alloc; its host may be there without a peer then.
std::unique_ptr<RdPeer> RdPeers::make(const Address& address, Opener opener, Time now) {
  const auto present = hosts_.find(address.with_port(0));
  // guard(rd-peers-per-address): condition => present == hosts_.end() && limits_.per_address == 0
  if (present != hosts_.end() && present->second.peers >= limits_.per_address) return nullptr;
  const uint32_t reserve = opener == Opener::there ? limits_.peers / kReserve : 0;
  if (size_ + reserve >= limits_.peers && !context_.owner.forget_for(address, now)) return nullptr;
  RdHost& host = host_at(address.with_port(0));
  return std::make_unique<RdPeer>(host, address, limits_, record_memory_, now);
}

RdPeer* RdPeers::find_or_add(const Address& address, Opener opener, Time now) try {
  if (RdPeer* peer = find(address)) return peer;
  std::unique_ptr<RdPeer> peer = make(address, opener, now);
  if (!peer) return nullptr;
  latest_ = peer.get();
  peers_.emplace(address, std::move(peer));
  ++size_;
  return latest_;
} catch (const std::bad_alloc&) {
  forget_host(address);
  latest_ = nullptr;
  return nullptr;
}

RdPeer* RdPeers::add_beside(RdPeer& present, Time now) try {
  uint32_t incarnations = 0;
  std::unique_ptr<RdPeer>& newest = peers_.find(present.address())->second;
  for (RdPeer* peer = newest.get(); peer != nullptr; peer = peer->older_.get()) ++incarnations;
  if (incarnations >= kMaxIncarnations) return nullptr;
  std::unique_ptr<RdPeer> peer = make(present.address(), Opener::there, now);
  if (!peer) return nullptr;
  peer->older_ = std::move(newest);
  newest = std::move(peer);
  latest_ = newest.get();
  ++size_;
  return latest_;
} catch (const std::bad_alloc&) {
  return nullptr;
}

/// Throws std::bad_alloc, and has changed nothing then.
RdHost& RdPeers::host_at(const Address& address) {
  if (const auto found = hosts_.find(address); found != hosts_.end()) return found->second;
  ReceiveShares& shares = context_.shares;
  ReceiveShares::Share* const shared = shares.shared() ? &shares.join(address) : nullptr;
  try {
    return hosts_.try_emplace(address, context_, shared).first->second;
  } catch (const std::bad_alloc&) {
    if (shared != nullptr) shares.leave(address);
    throw;
  }
}

/// Unless it has a peer.
void RdPeers::forget_host(const Address& address) {
  const auto host = hosts_.find(address.with_port(0));
  if (host == hosts_.end() || host->second.peers != 0) return;
  if (context_.shares.shared()) context_.shares.leave(host->first);
  hosts_.erase(host);
}

RdPeer* RdPeers::find_unused(Duration silence, const Address& newcomer, Time now) {
  RdPeer* best = nullptr;
  const auto host = hosts_.find(newcomer.with_port(0));
  const uint32_t of_newcomer = host == hosts_.end() ? 0 : host->second.peers;
  const auto look_at = [&](RdPeer& peer) {
    // guard(rd-full-table): => const bool has_more = false;
    const bool has_more = peer.host.peers > of_newcomer + 1;
    // guard(rnic): !peer.times.has_delivered_within(silence, now) => true
    // guard(rnic): now - peer.times.quiet_since() >= silence => true
    const bool quiet = has_more ? !peer.times.has_delivered_within(silence, now)
                                : now - peer.times.quiet_since() >= silence;
    if (!peer.unused() || !quiet) return;  // guard(rnic)
    if (best == nullptr || best->host.peers < peer.host.peers) best = &peer;
  };
  for (int i = 0; i < kPlacesSearched; ++i) {
    searched_ = (searched_ + 1) % peers_.bucket_count();
    for (auto at = peers_.begin(searched_); at != peers_.end(searched_); ++at)
      for (RdPeer* peer = at->second.get(); peer != nullptr && at->first != newcomer;
           peer = peer->older_.get())
        look_at(*peer);
  }
  return best;
}

void RdPeers::erase(RdPeer& peer) {
  latest_ = nullptr;
  const Address address = peer.address();
  const auto found = peers_.find(address);
  std::unique_ptr<RdPeer>* place = &found->second;
  while (place->get() != &peer) place = &(*place)->older_;
  std::unique_ptr<RdPeer> rest = std::move(peer.older_);
  *place = std::move(rest);
  if (!found->second) peers_.erase(found);
  --size_;
  forget_host(address);
}

void RdPeers::clear() {
  latest_ = nullptr;
  peers_.clear();
  while (!hosts_.empty()) forget_host(hosts_.begin()->first);
  size_ = 0;
}

}  // namespace diwarp::rnic
