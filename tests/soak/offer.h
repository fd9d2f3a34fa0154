// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <diwarp/verbs.h>

#include "soak/arena.h"

namespace soak {

/// Offers that a process keeps of its own, and of each peer.
inline constexpr size_t kMostOffers = 128;

enum class Use : uint8_t { write, read, atomic, invalidate };

/// Memory that this process lends to a peer. A peer writes to one once; so its bytes follow from
/// the offer.
struct Offer {
  uint64_t id = 0;
  diwarp::QpType type = diwarp::QpType::rc;
  Use use = Use::write;
  uint32_t remote = 0;
  uint32_t remote_life = 0;
  double until = 0;
  bool asked_back = false;
  bool written = false;  ///< as the peer told: [begin, end) is what it wrote, all else as it was
  uint64_t begin = 0;
  uint64_t end = 0;
  diwarp::STag stag = 0;
  uint64_t base = 0;  ///< tagged offset of the first byte
  Buffer buffer;
  std::optional<diwarp::MemoryWindow> window = {};  ///< the peer has the memory through it alone

  bool valid() const { return window ? window->query().valid : buffer.region().valid(); }
};

}  // namespace soak
