// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "diwarp/address.h"
#include "stack/datagram.h"

namespace diwarp::fuzz {

/// A stranger's knowledge of its target at the beginning.
struct StrangerTarget {
  Address address;
  uint32_t q_key = 0;
  uint64_t base = 0;                      ///< of the regions
  std::function<uint32_t(uint8_t)> stag;  ///< of one of the regions
};

/// The names that a stranger has, and what it learnt from what its target sent.
struct StrangerKnowledge {
  using Datagram = std::vector<std::byte>;

  /// Ends the program where the datagram is none of the RNIC.
  void learn(const Datagram& datagram);

  uint32_t incarnation = 0;
  uint32_t msn = 100;
  uint32_t epoch = 5;
  uint32_t peer_incarnation = 0;
  uint32_t peer_epoch = 0;
  uint32_t next = 0;          ///< own sequence number
  uint32_t acknowledged = 0;  ///< of the target's
  uint32_t sink = 0;          ///< of a Read of the target
  uint32_t sink_length = 0;
  std::deque<Datagram> heard = {};                            ///< the last ones
  std::vector<std::byte> proof = std::vector<std::byte>(24);  ///< of a Challenge

 private:
  void learn_reliable(const Datagram& datagram);
  void learn_request(const test::Segment& segment);
  void learn_numbers();
};

}  // namespace diwarp::fuzz
