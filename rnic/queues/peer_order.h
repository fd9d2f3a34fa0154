// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/siphash.h"
#include "diwarp/address.h"

namespace diwarp::rnic {

/// The order in which requests are reported where each peer has an order of its own: the requests
/// to one peer as they were added, those to different peers as they get done. A request is known by
/// its slot, a number below the depth. With the baton.
///
/// A slot is free, then waiting (added), then done, then reportable (all that were added before it
/// for its peer are), then free. Each peer with waiting or done slots has a chain of them; the
/// chains stand in a hash table, whose key is secret as peers may have chosen their addresses.
class PeerOrder {
 public:
  PeerOrder() : key_(random_sip_key()) {}  // guard(counted-keys): random_sip_key() => SipKey{}

  /// For so many slots, a power of two. False where the memory cannot be had.
  bool take_memory(uint32_t depth) noexcept;

  void add(uint32_t slot, const Address& peer);
  void set_done(uint32_t slot);
  bool is_waiting(uint32_t slot) const { return nodes_[slot].state == State::waiting; }
  /// The next slot to report; nothing where none is reportable.
  std::optional<uint32_t> front() const;
  void pop_front();
  /// All slots are free.
  void clear();

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  enum class State : uint8_t { free, waiting, done, reportable };
  struct Node {
    Address peer;
    uint32_t next = kNone;        // of its chain; once reportable, of those to report
    uint32_t last = kNone;        // of the chain that begins here
    uint32_t next_chain = kNone;  // the chain after the one that begins here, in its bucket
    State state = State::free;
  };

  uint32_t& chain_of(const Address& peer);
  void move_done(uint32_t& chain);
  void append_reportable(uint32_t slot);

  const SipKey key_;
  uint32_t depth_ = 0;
  std::unique_ptr<Node[]> nodes_;        // one a slot
  std::unique_ptr<uint32_t[]> buckets_;  // as many; the first slots of chains
  uint32_t first_reportable_ = kNone;
  uint32_t last_reportable_ = kNone;
};

}  // namespace diwarp::rnic
