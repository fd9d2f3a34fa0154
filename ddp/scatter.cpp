// SPDX-License-Identifier: Apache-2.0
#include "ddp/scatter.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace diwarp::ddp {
namespace {

std::byte* start_of(const Sge& sge) { return static_cast<std::byte*>(sge.address); }

}  // namespace

void scatter(std::span<const Sge> sges, uint64_t offset, ConstBytes bytes) {
  for (const Sge& sge : sges) {
    if (bytes.empty()) return;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const size_t count = std::min<size_t>(sge.length - offset, bytes.size());
    std::memcpy(start_of(sge) + offset, bytes.data(), count);
    bytes = bytes.subspan(count);
    offset = 0;
  }
  assert(bytes.empty());
}

void gather(std::span<const Sge> sges, uint64_t offset, Bytes out) {
  for (const Sge& sge : sges) {
    if (out.empty()) return;
    if (offset >= sge.length) {
      offset -= sge.length;
      continue;
    }
    const size_t count = std::min<size_t>(sge.length - offset, out.size());
    std::memcpy(out.data(), start_of(sge) + offset, count);
    out = out.subspan(count);
    offset = 0;
  }
  assert(out.empty());
}

size_t pieces_of(std::span<const Sge> sges, uint64_t offset, uint64_t length,
                 std::span<Bytes> out) {
  size_t pieces = 0;
  for (const Sge& sge : sges) {
    if (length == 0) break;
    const uint64_t skipped = std::min<uint64_t>(offset, sge.length);
    const uint64_t count = std::min(sge.length - skipped, length);
    if (count != 0) out[pieces++] = {start_of(sge) + skipped, count};
    offset -= skipped;
    length -= count;
  }
  assert(length == 0);
  return pieces;
}

void SgeCursor::seek(uint64_t offset) {
  if (offset == position_) return;
  position_ = offset;
  for (index_ = 0; index_ < sges_.size() && offset >= sges_[index_].length; ++index_) {
    offset -= sges_[index_].length;
  }
  within_ = offset;
  assert(index_ < sges_.size() || within_ == 0);
}

size_t SgeCursor::take_several(uint64_t length, std::span<ConstBytes> out) {
  size_t pieces = 0;
  size_t index = index_;
  uint64_t within = within_;
  for (uint64_t left = length; left != 0;) {
    assert(index < sges_.size());
    const Sge& sge = sges_[index];
    const uint64_t count = std::min(sge.length - within, left);
    if (count != 0) {
      if (pieces == out.size()) return 0;
      out[pieces++] = ConstBytes(start_of(sge) + within, count);
    }
    left -= count;
    within += count;
    if (within == sge.length) {
      ++index;
      within = 0;
    }
  }
  index_ = index;
  within_ = within;
  position_ += length;
  return pieces;
}

}  // namespace diwarp::ddp
