// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "ddp/scatter.h"
#include "diwarp/types.h"

/// Placement (RFC 5041 section 2.1): the payload of a segment goes to where its header says, in
/// memory that was checked.
namespace diwarp::ddp {

/// The buffer of one untagged message (RFC 5041 section 4.3), or what a response is awaited in.
struct UntaggedBuffer {
  std::span<const Sge> sges;
  uint64_t length = 0;  ///< bytes of the list

  /// Whether `bytes` at `offset` lie in it; safe against 64-bit wrap.
  bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= length && bytes <= length - offset;
  }
};

/// Why a segment is not placed in an untagged buffer, in the order of the checks.
enum class BufferFault : uint8_t {
  none,
  too_long,    ///< it reaches beyond the buffer
  protection,  ///< the buffer's memory may not be written (any more)
};

/// Memory that may be written now: a list of SGEs, or a range of a region. Only a
/// ProtectionContext makes one, of what it has checked, so that nothing is placed unchecked. Good
/// until the baton goes back; the list must outlive it.
class PlacementTarget {
 public:
  /// No memory: good for segments of no bytes.
  PlacementTarget() = default;

  /// Copies a segment's payload to `offset` bytes from the beginning. There must be room for it.
  void place(uint64_t offset, ConstBytes payload) const {
    if (payload.empty()) return;
    if (!sges_.empty()) return scatter(sges_, begin_ + offset, payload);
    assert(begin_ + offset + payload.size() <= range_.size());
    std::memcpy(range_.data() + begin_ + offset, payload.data(), payload.size());
  }

  /// Writes the pieces of memory that hold `length` bytes from `offset` on, none of them empty, to
  /// the front of `out`, which has room for kMaxSge. Returns their number.
  size_t pieces(uint64_t offset, uint64_t length, std::span<Bytes> out) const {
    if (!sges_.empty()) return pieces_of(sges_, begin_ + offset, length, out);
    assert(begin_ + offset + length <= range_.size());
    if (length != 0) out[0] = range_.subspan(begin_ + offset, length);
    return length != 0 ? 1 : 0;
  }

  /// The same memory from `offset` on.
  PlacementTarget from(uint64_t offset) const {
    PlacementTarget rest = *this;
    rest.begin_ += offset;
    return rest;
  }

 private:
  friend class ProtectionContext;

  explicit PlacementTarget(Bytes range) : range_(range) {}
  /// Most lists have one entry, which is a range.
  explicit PlacementTarget(std::span<const Sge> sges) {
    if (sges.size() == 1)
      range_ = {static_cast<std::byte*>(sges[0].address), sges[0].length};
    else
      sges_ = sges;
  }

  std::span<const Sge> sges_;
  Bytes range_;  // where there are no SGEs
  uint64_t begin_ = 0;
};

}  // namespace diwarp::ddp
