// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <diwarp/verbs.h>

#include "soak/borrowed.h"
#include "soak/offers.h"
#include "soak/process.h"

namespace soak {

/// What comes from the orchestrator: what to do, which peers there are, and what these say.
class Orders {
 public:
  Orders(Process& process, Offers& offers, Borrowed& borrowed);

  void read_input();
  /// The process is to end.
  bool done() const { return done_; }

 private:
  void obey(const std::string& line);
  void learn_peer(uint32_t index, uint32_t life, std::array<diwarp::Address, 3> addresses);
  void forget_peer(uint32_t index);
  void hear(uint32_t index, const std::string& text);
  void hear_gap(uint32_t index, uint64_t number);
  void hear_partial(uint32_t index, uint64_t offer);

  Process& process_;
  Offers& offers_;
  Borrowed& borrowed_;
  std::string input_;
  bool done_ = false;
};

}  // namespace soak
