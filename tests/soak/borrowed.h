// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <istream>

#include <diwarp/verbs.h>

#include "soak/process.h"

namespace soak {

/// The offers of peers, and which of them posted requests name.
class Borrowed {
 public:
  explicit Borrowed(Process& process) : process_(process) {}

  /// The words of an offer that a peer makes.
  void take(uint32_t index, std::istream& words);
  /// One of them, at random; null where there is none for this.
  Lent* pick(uint32_t remote, diwarp::QpType type, Use use);
  void forget(uint32_t remote, uint64_t id);
  /// Gives an offer back that was asked back and that nothing names any more.
  void give_back(uint32_t index, uint64_t id);
  /// A request that may name one is over.
  void release_reader(const Request& request);

 private:
  Process& process_;
};

}  // namespace soak
