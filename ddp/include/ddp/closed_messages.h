// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace diwarp::ddp {

/// True if `a` comes before `b` in serial number arithmetic (RFC 1982).
constexpr bool msn_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

/// Which messages of one source are over (delivered, timed out, given up), so that late or
/// duplicate segments touch nothing. It remembers the newest `limit` closed MSNs and a floor, the
/// highest MSN it has forgotten: at or below the floor counts as closed. MSNs that follow each
/// other share one entry; a source that sends in order costs one entry and no allocation after the
/// first.
class ClosedMessages {
 public:
  static constexpr size_t kDefaultLimit = 1024;

  explicit ClosedMessages(size_t limit = kDefaultLimit) : limit_(limit) {}

  bool contains(uint32_t msn) const;

  /// Marks `msn` as over. False if it already was.
  bool close(uint32_t msn);

  /// Number of MSNs remembered one by one (at most the limit).
  size_t remembered() const { return remembered_; }

 private:
  struct Run {
    uint32_t first;
    uint32_t last;  // inclusive
  };
  bool at_or_below_floor(uint32_t msn) const { return has_floor_ && !msn_before(floor_, msn); }
  /// The total order of the runs: distance from the anchor, which is the floor or, before there is
  /// one, the first MSN closed. Serial order by itself is no order over the whole circle.
  int32_t place(uint32_t msn) const { return static_cast<int32_t>(msn - anchor_); }
  size_t run_reaching(uint32_t msn) const;
  void add(size_t position, uint32_t msn);
  void forget_oldest();
  void forget_newest();

  std::vector<Run> runs_;  // by place, disjoint, never adjacent
  size_t limit_;
  size_t remembered_ = 0;
  bool has_floor_ = false;
  uint32_t floor_ = 0;
  uint32_t anchor_ = 0;
};

}  // namespace diwarp::ddp
