// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <set>
#include <vector>

#include <diwarp/verbs.h>

#include "soak/offer.h"

namespace soak {

/// An offer of a peer.
struct Lent {
  uint64_t id = 0;
  diwarp::QpType type = diwarp::QpType::rc;
  Use use = Use::write;
  diwarp::STag stag = 0;
  uint64_t base = 0;
  uint64_t length = 0;
  bool windowed = false;  ///< good for one connection
  uint32_t readers = 0;   ///< requests that name it
  bool asked_back = false;
  std::array<uint64_t, 8> values{};  ///< atomic: of its words, when all that is posted is done
};

inline size_t index_of(diwarp::QpType type) { return static_cast<size_t>(type); }

/// Messages that came from a peer over one kind of datagrams.
struct Heard {
  uint32_t life = 0;
  uint64_t opened = 0;
  uint64_t newest = 0;
  std::bitset<512> seen;  ///< UD: number modulo 512, of the newest so many
};

/// A peer process, as this one knows it.
struct Remote {
  uint32_t life = 0;  ///< 0: there is none
  bool paused = false;
  std::array<diwarp::Address, 3> addresses;  ///< by type: of the listener, or of the queue pair
  std::vector<Lent> lent;
  std::array<uint64_t, 3> sent{};  ///< numbers given to Sends
  std::array<Heard, 3> heard;
  std::set<uint64_t> failed;   ///< RD: numbers of Sends that did not succeed, the newest
  std::set<uint64_t> written;  ///< RD: offers that Write-Records to succeeded, the newest
};

}  // namespace soak
