// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace soak {

struct Settings {
  std::string address;
  uint64_t seed = 1;           ///< of the run: contents follow from it
  uint32_t index = 0;          ///< of the process
  uint32_t life = 1;           ///< the number of this start of a process, unique in the run
  double stuck = 60;           ///< seconds that an operation may take
  double round = 1;            ///< seconds between two lines
  bool impaired = true;        ///< datagrams get lost, doubled, reordered, damaged and cut
  uint64_t descriptors = 0;    ///< RLIMIT_NOFILE; 0: as it is
  uint64_t address_space = 0;  ///< RLIMIT_AS, bytes; 0: as it is
  bool core = false;           ///< a finding ends the process with a core dump
  std::string plant;           ///< a fault that the soak must find

  bool limited() const { return address_space != 0 || descriptors != 0; }
};

/// Processes of a run.
inline constexpr uint32_t kMostPeers = 16;
/// Length of a posted receive; longer ones must be refused.
inline constexpr uint32_t kReceiveSize = 64 << 10;
/// The place of the line whose receives are in the shared receive queue. It has no queue pair.
inline constexpr uint32_t kSharedPlace = 2 + kMostPeers;
inline constexpr uint32_t kSharedReceives = 48;

}  // namespace soak
