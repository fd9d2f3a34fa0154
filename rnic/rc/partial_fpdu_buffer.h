// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "base/bytes.h"
#include "mpa/fpdu.h"

namespace diwarp::rnic {

/// The memory that stays allocated for unfinished FPDUs of an idle queue pair, in bytes.
inline constexpr size_t kIdlePartialFpdu = 4096;

/// Bytes that were read from a stream and could not be taken yet. Memory grows in steps, so that it
/// soon stops growing: to what small segments need, the largest FPDU, a held stream.
class PartialFpduBuffer {
  static constexpr size_t kLongestFpdu = mpa::fpdu_bytes(mpa::kMaxUlpdu);
  static constexpr size_t kMostMarkers =
      kLongestFpdu / (mpa::kMarkerSpacing - mpa::kMarkerBytes) + 2;

 public:
  /// The longest FPDU on the stream, and the header of the next.
  static constexpr size_t kWholeFpdu = kLongestFpdu + kMostMarkers * mpa::kMarkerBytes + 64;

  ConstBytes bytes() const { return {memory_.get() + begin_, end_ - begin_}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }

  /// Replaces what is there by bytes from elsewhere.
  void assign(ConstBytes bytes) {
    used_ = used_ || !empty() || !bytes.empty();
    begin_ = end_ = 0;
    if (!bytes.empty()) append(bytes);
  }

  /// Puts bytes from elsewhere behind those that are there.
  void append(ConstBytes bytes) {
    std::memcpy(room(bytes.size()).data(), bytes.data(), bytes.size());
    add(bytes.size());
  }

  /// Memory behind the bytes that are there, to be filled and added.
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

  bool keeps_memory() const { return capacity_ > kIdlePartialFpdu; }
  /// Frees memory that was not used since the last call. True if there may be some to free later.
  bool trim() {
    if (std::exchange(used_, false) || !empty()) return true;
    release();
    return false;
  }
  /// Frees all memory, with what is in it.
  void release() {
    memory_.reset();
    capacity_ = begin_ = end_ = 0;
  }

 private:
  void make_room(size_t bytes);

  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool used_ = false;  // since the last trim()
};

}  // namespace diwarp::rnic
