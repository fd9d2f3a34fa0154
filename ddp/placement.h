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
    if (sges_ != nullptr) return scatter({sges_, size_}, begin_ + offset, payload);
    assert(offset + payload.size() <= size_);
    std::memcpy(memory_ + offset, payload.data(), payload.size());
  }

  /// Writes the pieces of memory that hold `length` bytes from `offset` on, none of them empty, to
  /// the front of `out`, which has room for kMaxSge. Returns their number.
  size_t pieces(uint64_t offset, uint64_t length, std::span<Bytes> out) const {
    if (sges_ != nullptr) return pieces_of({sges_, size_}, begin_ + offset, length, out);
    assert(offset + length <= size_);
    if (length != 0) out[0] = {memory_ + offset, length};
    return length != 0 ? 1 : 0;
  }

  /// The same memory from `offset` on.
  PlacementTarget from(uint64_t offset) const {
    PlacementTarget rest = *this;
    if (sges_ != nullptr) {
      rest.begin_ += offset;
    } else {
      rest.memory_ += offset;
      rest.size_ -= offset;
    }
    return rest;
  }

 private:
  friend class ProtectionContext;

  PlacementTarget(std::byte* memory, uint64_t length) : memory_(memory), size_(length) {}
  /// Most lists have one entry, which is a range.
  explicit PlacementTarget(std::span<const Sge> sges) {
    if (sges.size() == 1) {
      memory_ = static_cast<std::byte*>(sges[0].address);
      size_ = sges[0].length;
    } else if (!sges.empty()) {
      sges_ = sges.data();
      size_ = sges.size();
    }
  }

  const Sge* sges_ = nullptr;    // null: it is a range
  std::byte* memory_ = nullptr;  // the range's
  size_t size_ = 0;              // bytes of the range, or entries of the list
  uint64_t begin_ = 0;           // where in the list it begins
};

}  // namespace diwarp::ddp
