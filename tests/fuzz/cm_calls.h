// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/cm_run.h"

namespace diwarp::fuzz {

/// Calls of the connection manager with arguments as the input says, taken or refused as the model
/// of the id says.
class CmCalls {
 public:
  explicit CmCalls(CmRun& run) : run_(run) {}

  /// An id in an empty place.
  void create(size_t slot);
  /// A handle that was moved from refuses everything.
  void move(size_t from);
  void make(CmModel::Call which, CmEntry& entry);

 private:
  using Call = CmModel::Call;

  /// Makes the call. True if it was taken; it must be refused where the model says so, and taken
  /// where the model and `right` say so.
  template <class Function>
  bool call(CmEntry& entry, Call which, bool right, Function&& function);
  std::vector<std::byte> private_data();
  void resolve(CmEntry& entry);
  void bind(CmEntry& entry);
  void listen(CmEntry& entry);
  void connect(CmEntry& entry);
  void accept(CmEntry& entry);
  void reject(CmEntry& entry);
  void disconnect(CmEntry& entry);
  void check_husk(CmId& husk);

  CmRun& run_;
};

}  // namespace diwarp::fuzz
