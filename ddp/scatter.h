// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "diwarp/types.h"

namespace diwarp::ddp {

/// Sum of the lengths of a scatter/gather list, in bytes.
inline uint64_t total_length(std::span<const Sge> sges) {
  uint64_t total = 0;
  for (const Sge& sge : sges) total += sge.length;
  return total;
}

/// Copies `bytes` into the list, starting `offset` bytes from its beginning. The list must have
/// room for offset + bytes.size().
void scatter(std::span<const Sge> sges, uint64_t offset, ConstBytes bytes);

/// Copies bytes out of the list, starting `offset` bytes from its beginning, until `out` is full.
/// The list must have offset + out.size() bytes.
void gather(std::span<const Sge> sges, uint64_t offset, Bytes out);

/// Writes the pieces of memory that hold `length` bytes from `offset` on, none of them empty, to
/// the front of `out`, which has room for as many as the list has entries. Returns their number.
size_t pieces_of(std::span<const Sge> sges, uint64_t offset, uint64_t length, std::span<Bytes> out);

/// Walks a scatter/gather list forward and hands out pieces of it. Remembers where it is, so that
/// slicing a message into segments in order costs no search.
class SgeCursor {
 public:
  SgeCursor() = default;
  explicit SgeCursor(std::span<const Sge> sges) : sges_(sges) {}

  /// Moves to `offset` bytes from the beginning (any direction).
  void seek(uint64_t offset);

  /// Writes the pieces of the next `length` bytes to the front of `out` and steps over them.
  /// Returns the number of pieces, or 0 with nothing moved if `out` is too small (length > 0).
  size_t take_pieces(uint64_t length, std::span<ConstBytes> out) {
    // Most messages are one segment, of one SGE.
    const bool is_one_piece = index_ < sges_.size() && length <= sges_[index_].length - within_;
    if (!is_one_piece || length == 0 || out.empty()) return take_several(length, out);
    const Sge& sge = sges_[index_];
    out[0] = ConstBytes(static_cast<const std::byte*>(sge.address) + within_, length);
    within_ += length;
    position_ += length;
    if (within_ == sge.length) {
      ++index_;
      within_ = 0;
    }
    return 1;
  }

 private:
  size_t take_several(uint64_t length, std::span<ConstBytes> out);

  std::span<const Sge> sges_;
  size_t index_ = 0;
  uint64_t within_ = 0;    // of sges_[index_]
  uint64_t position_ = 0;  // of the whole list
};

}  // namespace diwarp::ddp
