// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "soak/borrowed.h"
#include "soak/completions.h"
#include "soak/lines.h"
#include "soak/offers.h"
#include "soak/orders.h"
#include "soak/posting.h"
#include "soak/process.h"
#include "soak/settings.h"
#include "soak/traffic.h"

namespace soak {

/// One process of a soak: does random operations with its peers until it is told to end, and checks
/// every byte of what comes.
class Peer {
 public:
  explicit Peer(const Settings& settings);
  int run();

 private:
  void tick();
  void close_round();

  Process process_;
  Posting posting_;
  Offers offers_;
  Borrowed borrowed_;
  Completions completions_;
  Lines lines_;
  Traffic traffic_;
  Orders orders_;
  uint64_t overruns_ = 0;
  double next_keep_ = 0;
};

}  // namespace soak
