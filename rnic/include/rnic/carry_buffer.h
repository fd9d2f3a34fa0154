// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "mpa/fpdu.h"
#include "rnic/engine.h"

namespace diwarp::rnic {

/// What stays allocated for unfinished FPDUs of an idle queue pair, in bytes.
inline constexpr size_t kIdleCarry = 4096;

/// Bytes that were read from a stream and could not be taken yet. Memory grows in steps, so that it
/// soon stops growing: to what small segments need, the largest FPDU, a held stream.
class CarryBuffer {
 public:
  ConstBytes bytes() const { return {memory_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  /// Replaces what is there by bytes from elsewhere.
  void assign(ConstBytes bytes) {
    used_ = used_ || !empty() || !bytes.empty();
    begin_ = end_ = 0;
    if (bytes.empty()) return;
    std::memcpy(room(bytes.size()).data(), bytes.data(), bytes.size());
    end_ = bytes.size();
  }

  /// Puts bytes from elsewhere behind what is there.
  void append(ConstBytes bytes) {
    std::memcpy(room(bytes.size()).data(), bytes.data(), bytes.size());
    add(bytes.size());
  }

  /// Memory behind what is there, to be filled and added.
  Bytes room(size_t bytes) {
    if (capacity_ - end_ < bytes) make_room(bytes);
    return {memory_.get() + end_, bytes};
  }
  void add(size_t bytes) {
    end_ += bytes;
    used_ = true;
  }

  /// Takes bytes from the front.
  void drop(size_t bytes) {
    begin_ += bytes;
    if (empty()) begin_ = end_ = 0;
  }

  bool keeps_memory() const { return capacity_ > kIdleCarry; }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim() {
    if (std::exchange(used_, false) || !empty()) return true;
    memory_.reset();
    capacity_ = 0;
    return false;
  }

 private:
  static constexpr size_t kLongestFpdu = mpa::fpdu_bytes(mpa::kMaxUlpdu);
  static constexpr size_t kMostMarkers =
      kLongestFpdu / (mpa::kMarkerSpacing - mpa::kMarkerBytes) + 2;

 public:
  /// The longest FPDU on the stream, and the header of the next.
  static constexpr size_t kWholeFpdu = kLongestFpdu + kMostMarkers * mpa::kMarkerBytes + 64;

 private:
  static constexpr size_t capacity_for(size_t bytes) {
    if (bytes <= kIdleCarry) return kIdleCarry;
    return bytes <= kWholeFpdu ? kWholeFpdu : kStreamBufferBytes;
  }

  void make_room(size_t bytes) {
    const size_t held = size();
    assert(held + bytes <= kStreamBufferBytes);
    if (held + bytes <= capacity_) {
      std::memmove(memory_.get(), memory_.get() + begin_, held);
    } else {
      const size_t capacity = capacity_for(held + bytes);
      std::unique_ptr<std::byte[]> larger(new std::byte[capacity]);
      if (held != 0) std::memcpy(larger.get(), memory_.get() + begin_, held);
      memory_ = std::move(larger);
      capacity_ = capacity;
    }
    begin_ = 0;
    end_ = held;
  }

  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool used_ = false;  // since the last trim()
};

}  // namespace diwarp::rnic
