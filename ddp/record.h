// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/validity_pool.h"
#include "ddp/reassembly.h"
#include "diwarp/types.h"

namespace diwarp::ddp {

/// The fields of a whole Write-Record, which each of its segments repeats.
struct RecordInfo {
  STag stag = 0;
  uint64_t base = 0;    ///< tagged offset of the message's first byte
  uint32_t length = 0;  ///< of the message
  bool solicited = false;
  bool has_immediate = false;
  uint64_t immediate = 0;
  friend bool operator==(const RecordInfo&, const RecordInfo&) = default;
};

/// A Write-Record at its target: the bytes that have arrived, in any order. Any segment opens it,
/// since each describes the whole message. Its bytes are never placed twice.
class Record {
 public:
  /// Starts a message of which nothing has come yet.
  void open(const RecordInfo& info);

  /// Whether a segment that says this is of another message, or of none.
  bool contradicts(const RecordInfo& said) const { return said != info_; }

  /// Checks a segment of `length` bytes at `offset` that does not contradict, lies inside the
  /// message, and ends it if it is the `last`; if there is no fault records it, and the caller then
  /// places its bytes. A segment with a fault changes nothing; one without bytes that tells nothing
  /// new is a duplicate, one that overlaps others in part a contradiction.
  SegmentFault add(uint32_t offset, uint32_t length, bool last, ValidityPool& pool) noexcept;

  /// Every byte has arrived.
  bool complete() const { return bytes_.covered() == info_.length; }
  /// The segment that ends the message has arrived.
  bool ended() const { return ended_; }

  const RecordInfo& info() const { return info_; }
  uint64_t valid_bytes() const { return bytes_.covered(); }

  /// The map of what has arrived; the record is used up then.
  ValidityMap take_map() noexcept { return bytes_.take(info_.length); }
  /// The same of a record that goes on.
  ValidityMap copy_map() const noexcept { return bytes_.copy(info_.length); }
  /// Forgets what has arrived.
  void clear() noexcept { bytes_.clear(); }

 private:
  SegmentFault check_segment(uint32_t offset, uint32_t length, bool last) const;

  RecordInfo info_;
  bool ended_ = false;
  ValidityBuilder bytes_;
};

}  // namespace diwarp::ddp
