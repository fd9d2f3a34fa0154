// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <string>

#include "base/random.h"
#include "soak/arena.h"
#include "soak/contents.h"
#include "soak/device.h"
#include "soak/head.h"
#include "soak/ledger.h"
#include "soak/line.h"
#include "soak/offer.h"
#include "soak/planted_faults.h"
#include "soak/remote.h"
#include "soak/requests.h"
#include "soak/run_clock.h"
#include "soak/settings.h"

namespace soak {

/// What the parts of a process share: what it knows of itself and of its peers.
struct Process {
  explicit Process(const Settings& settings);

  uint64_t key(uint32_t life, Kind kind, uint64_t number) const {
    return key_of(settings.seed, life, kind, number);
  }
  uint64_t own_key(Kind kind, uint64_t number) const { return key(settings.life, kind, number); }
  /// Of the message with this head, from the process `life` to the process with index `to`.
  uint64_t message_key(uint32_t life, const Head& head, uint32_t to) const;

  /// Says something to a peer, if there is one.
  void tell(uint32_t index, const std::string& text) const;
  /// Numbers of messages begin anew: nothing is known of those before.
  void forget_heard(diwarp::QpType type);

  const Settings settings;
  diwarp::Random random;
  Ledger ledger;
  Arena arena;
  Handles handles;
  Requests requests;
  std::list<Offer> offers;
  std::array<Remote, kMostPeers> remotes;
  std::array<Line, kSharedPlace + 1> lines;  ///< UD, RD, RC of each remote, shared receives
  uint64_t next_number = 1;                  ///< of offers and Reads
  RunClock clock;
  PlantedFaults faults;
  bool ending = false;  ///< nothing new is begun
};

}  // namespace soak
