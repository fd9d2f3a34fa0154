// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "diwarp/types.h"

namespace diwarp::bridge {

class WorkTable;

/// Completions that wait for the application to poll them, in order. Each but those of tables that
/// are gone holds the place of its request. reserve() alone takes memory.
class WaitingCompletions {
 public:
  /// Room for `places`, besides those that wait. Throws std::bad_alloc.
  void reserve(size_t places);

  bool empty() const { return first_ == all_.size(); }
  /// The next one, to be filled in. There must be room.
  WorkCompletion& add(WorkTable& table, uint32_t slot) noexcept;
  /// Moves the oldest to the application, and releases their places. Returns how many.
  size_t take(std::span<WorkCompletion> completions);

  /// The table goes. What waits takes no place of it any more, and is dropped unless `keeps`. Of
  /// those of tables that are gone no more than `most` stay, the newest.
  void forget(const WorkTable& table, bool keeps, size_t most);

 private:
  struct Waiting {
    WorkCompletion completion;
    WorkTable* table;  // null: it is gone
    uint32_t slot;
  };

  void drop_taken();
  size_t orphans() const;

  std::vector<Waiting> all_;
  size_t first_ = 0;  // those before it are taken
};

}  // namespace diwarp::bridge
