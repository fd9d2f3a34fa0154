// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// A reliable datagram that came early or found no receive: what follows its RD header.
struct BufferedDatagram {
  BufferedDatagram* next = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;  ///< bytes behind this structure
  uint8_t flags = 0;      ///< of its prefix
  RdKind kind = RdKind::data;

  ConstBytes bytes() const { return {reinterpret_cast<const std::byte*>(this + 1), size}; }
};

/// Memory for these, of all peers of a queue pair together, bounded. Places of the usual size are
/// used again without the system's help.
class ReorderBuffer {
 public:
  explicit ReorderBuffer(size_t max_bytes) : max_bytes_(max_bytes) {}
  ~ReorderBuffer() { shrink(); }
  ReorderBuffer(const ReorderBuffer&) = delete;
  ReorderBuffer& operator=(const ReorderBuffer&) = delete;

  /// A copy; null where there is no room for it.
  BufferedDatagram* keep(RdKind kind, uint8_t flags, ConstBytes bytes);
  void release(BufferedDatagram* kept);
  /// Counts bytes that its user takes for itself. False, and nothing is counted, where they are not
  /// left.
  bool take(size_t bytes);
  void give_back(size_t bytes) { used_ -= bytes; }
  /// For how many more of the size that comes now there is room.
  uint32_t room() const;
  /// Gives memory that is not in use back to the system.
  void shrink();
  size_t used() const { return used_; }

 private:
  static constexpr uint32_t kUsual = 2048;

  const size_t max_bytes_;
  size_t used_ = 0;               // bytes, of places in use
  uint32_t largest_ = kUsual;     // place that was asked for so far
  BufferedDatagram* free_ = nullptr;  // of the usual size
};

}  // namespace diwarp::dgram
