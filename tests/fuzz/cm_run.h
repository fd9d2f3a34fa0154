// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/cm_model.h"
#include "fuzz/input.h"

namespace diwarp::fuzz {

/// An id, and the place of the queue pair that it was given.
struct CmEntry {
  CmId id;
  CmModel model;
  size_t device = 0;
  size_t channel = 0;
  std::optional<size_t> queue_pair = {};
};

/// A queue pair that ids may be given.
struct CmParty {
  CmParty(const Device& host, size_t on, QpType type);
  const size_t device;
  ProtectionDomain pd;
  CompletionQueue cq;
  QueuePair qp;
};

/// What the parts of a run share: two devices on loopback, which have no threads, and the objects
/// of the application.
struct CmRun {
  static constexpr size_t kDevices = 2;
  static constexpr size_t kIds = 6;
  static constexpr size_t kQueuePairs = 4;

  explicit CmRun(Input& input);

  /// Null where the id is gone.
  CmEntry* entry_of(uint64_t number);
  /// Mostly of an id that listens.
  Address any_address();
  /// An id that there is.
  void destroy(size_t slot);

  Input& in;
  std::deque<Device> devices;
  std::array<std::optional<CmEventChannel>, kDevices> channels;
  std::array<std::unique_ptr<CmEntry>, kIds> ids;
  std::array<std::unique_ptr<CmParty>, kQueuePairs> parties;
  std::vector<std::vector<std::byte>> said;  ///< the private data of all calls
  bool stranger_spoke = false;
};

}  // namespace diwarp::fuzz
