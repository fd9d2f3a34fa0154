// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/budgeted_array.h"
#include "base/serial.h"

namespace diwarp::ddp {

/// Which messages of one source are over, so that late or duplicate segments touch nothing.
///
/// Of those that were accepted it remembers the newest `limit` MSNs and a floor, the highest MSN it
/// has forgotten: at or below the floor counts as closed. MSNs that follow each other share one
/// run; a source that sends in order costs one run and no memory.
///
/// Those that were refused, or given up, are remembered apart, by runs as well, and move no floor:
/// a message that was never accepted cannot close others. Of too many runs the oldest is forgotten.
///
/// Where there is no memory, it forgets sooner.
class ClosedMessages {
 public:
  static constexpr size_t kDefaultLimit = 1024;
  static constexpr size_t kDefaultRefusedLimit = 256;
  /// Refused runs that need no memory.
  static constexpr size_t kFreeRuns = 4;

  /// `limit`: of accepted MSNs. `refused_limit`: of refused runs, at least 1. `budget`: where
  /// memory comes from, if it is bounded; it must outlive this.
  explicit ClosedMessages(size_t limit = kDefaultLimit, size_t refused_limit = kDefaultRefusedLimit,
                          MemoryBudget* budget = nullptr)
      : runs_(budget),
        refused_(budget),
        limit_(static_cast<uint32_t>(limit)),
        refused_limit_(static_cast<uint32_t>(refused_limit)) {}

  bool contains(uint32_t msn) const { return is_accepted(msn) || is_refused(msn); }
  /// Over and accepted, as all at or below the floor are.
  bool is_accepted(uint32_t msn) const;

  /// Marks `msn` as over and accepted. False if it already was.
  bool close(uint32_t msn) noexcept;

  /// Marks `msn`, which was not refused before, as over without having been accepted. `frugal`:
  /// without taking memory.
  void refuse(uint32_t msn, bool frugal) noexcept;

  /// Number of accepted MSNs remembered one by one (at most the limit).
  size_t remembered() const { return remembered_; }
  /// Number of refused runs (at most their limit).
  size_t refused_runs() const { return refused_.size(); }

 private:
  struct Run {
    uint32_t first;
    uint32_t last;  // inclusive
  };
  bool is_refused(uint32_t msn) const;
  bool at_or_below_floor(uint32_t msn) const { return has_floor_ && !serial_before(floor_, msn); }
  /// The total order of the runs: distance from the anchor, which is the floor or, before there is
  /// one, the first MSN closed. Serial order by itself is no order over the whole circle.
  int32_t place(uint32_t msn) const { return static_cast<int32_t>(msn - anchor_); }
  bool continues_newest(uint32_t msn) const;
  size_t run_reaching(uint32_t msn) const;
  bool add(size_t position, uint32_t msn);
  void forget_oldest();
  void forget_oldest_run();
  void forget_newest();
  void raise_floor(uint32_t msn);
  bool join_refused(uint32_t msn);

  BudgetedArray<Run, 2> runs_;             // accepted; by place, disjoint, never adjacent
  BudgetedArray<Run, kFreeRuns> refused_;  // oldest first
  uint32_t limit_;
  uint32_t refused_limit_;
  uint32_t remembered_ = 0;
  bool has_floor_ = false;
  uint32_t floor_ = 0;
  uint32_t anchor_ = 0;
};

}  // namespace diwarp::ddp
