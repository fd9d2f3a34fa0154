// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/peer_order.h"

#include <algorithm>
#include <bit>
#include <new>
#include <span>
#include <utility>

namespace diwarp::rnic {

bool PeerOrder::take_memory(uint32_t depth) noexcept {
  std::unique_ptr<Node[]> nodes(new (std::nothrow) Node[depth]);
  std::unique_ptr<uint32_t[]> buckets(new (std::nothrow) uint32_t[depth]);
  if (!nodes || !buckets) return false;
  nodes_ = std::move(nodes);
  buckets_ = std::move(buckets);
  depth_ = depth;
  clear();
  return true;
}

/// Where the first slot of the peer's chain stands, or kNone for which one would stand.
uint32_t& PeerOrder::chain_of(const Address& peer) {
  const auto bytes = std::as_bytes(std::span(&peer, 1));
  uint32_t* chain = &buckets_[siphash(key_, bytes) & (depth_ - 1)];
  while (*chain != kNone && !(nodes_[*chain].peer == peer)) chain = &nodes_[*chain].next_chain;
  return *chain;
}

void PeerOrder::add(uint32_t slot, const Address& peer) {
  nodes_[slot] = {.peer = peer, .last = slot, .state = State::waiting};
  uint32_t& chain = chain_of(peer);
  if (chain == kNone) {
    chain = slot;
    return;
  }
  Node& first = nodes_[chain];
  nodes_[first.last].next = slot;
  first.last = slot;
}

void PeerOrder::set_done(uint32_t slot) {
  nodes_[slot].state = State::done;
  uint32_t& chain = chain_of(nodes_[slot].peer);
  if (chain == slot) move_done(chain);
}

/// Done requests at the head of the chain may be reported.
void PeerOrder::move_done(uint32_t& chain) {
  while (chain != kNone && nodes_[chain].state == State::done) {
    const uint32_t slot = chain;
    const Node& first = nodes_[slot];
    if (first.next == kNone) {
      chain = first.next_chain;
      append_reportable(slot);
      return;
    }
    Node& second = nodes_[first.next];
    second.last = first.last;
    second.next_chain = first.next_chain;
    chain = first.next;
    append_reportable(slot);
  }
}

void PeerOrder::append_reportable(uint32_t slot) {
  nodes_[slot].state = State::reportable;
  nodes_[slot].next = kNone;
  (first_reportable_ == kNone ? first_reportable_ : nodes_[last_reportable_].next) = slot;
  last_reportable_ = slot;
}

std::optional<uint32_t> PeerOrder::front() const {
  return first_reportable_ == kNone ? std::nullopt : std::optional(first_reportable_);
}

void PeerOrder::pop_front() {
  Node& node = nodes_[first_reportable_];
  node.state = State::free;
  first_reportable_ = node.next;
}

void PeerOrder::clear() {
  std::fill_n(nodes_.get(), depth_, Node{});
  std::fill_n(buckets_.get(), depth_, kNone);
  first_reportable_ = last_reportable_ = kNone;
}

}  // namespace diwarp::rnic
