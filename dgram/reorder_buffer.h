// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// A reliable datagram that came early or found no receive: the bytes after its RD header.
struct BufferedDatagram {
  BufferedDatagram* next = nullptr;
  uint32_t size = 0;
  uint32_t capacity = 0;  ///< bytes behind this structure
  uint8_t flags = 0;      ///< of its prefix
  RdKind kind = RdKind::data;

  ConstBytes bytes() const { return {reinterpret_cast<const std::byte*>(this + 1), size}; }
};

/// The memory of a ReorderBuffer that the peers at one IP address have taken together.
struct BufferShare {
  static constexpr uint32_t kUsual = 2048;  ///< bytes of a place for most datagrams

  size_t used = 0;            ///< bytes
  uint32_t largest = kUsual;  ///< place that they asked for since they had none
};

/// Memory for these, of all peers of a queue pair together, bounded. One address gets half of it at
/// most, so that it cannot leave others without. Places of the usual size are used again without
/// the system's help, and count to the bound until shrink().
class ReorderBuffer {
 public:
  explicit ReorderBuffer(size_t max_bytes) : max_bytes_(max_bytes) {}
  ~ReorderBuffer() { shrink(); }
  ReorderBuffer(const ReorderBuffer&) = delete;
  ReorderBuffer& operator=(const ReorderBuffer&) = delete;

  /// A copy; null where there is no room for it.
  BufferedDatagram* keep(RdKind kind, uint8_t flags, ConstBytes bytes, BufferShare& share);
  void release(BufferedDatagram* kept, BufferShare& share);
  /// Counts bytes that its user takes for itself. False, and nothing is counted, where they are not
  /// left.
  bool take_bytes(size_t bytes, BufferShare& share);
  void give_back_bytes(size_t bytes, BufferShare& share);
  /// For how many more of the size that those have sent lately there is room.
  uint32_t room(const BufferShare& share) const;
  /// Gives memory that is not in use back to the system.
  void shrink();
  size_t used() const { return used_; }
  /// Bytes of all places, those that are not in use included; at most the bound.
  size_t memory() const { return used_ + unused_; }

 private:
  static constexpr uint32_t kUsual = BufferShare::kUsual;

  size_t left(const BufferShare& share) const;
  BufferedDatagram* make(uint32_t capacity);
  void free_one();

  const size_t max_bytes_;
  size_t used_ = 0;                   // bytes, of places in use
  size_t unused_ = 0;                 // bytes, of free_; with used_ at most max_bytes_
  BufferedDatagram* free_ = nullptr;  // of the usual size
};

}  // namespace diwarp::dgram
