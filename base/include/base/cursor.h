// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/byte_order.h"
#include "base/bytes.h"

namespace diwarp {

/// Reads network-order fields one after another. A read past the end returns 0 (or no bytes),
/// fails the reader for good and leaves nothing to read; ask ok() once, after the last field.
class Reader {
 public:
  explicit Reader(ConstBytes source) : rest_(source) {}

  uint8_t u8() { return integer<uint8_t>(); }
  uint16_t be16() { return integer<uint16_t>(); }
  uint32_t be32() { return integer<uint32_t>(); }
  uint64_t be64() { return integer<uint64_t>(); }

  /// A view of the next `count` bytes.
  ConstBytes bytes(size_t count) {
    if (!has(count)) return {};
    const ConstBytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  void skip(size_t count) { bytes(count); }

  bool ok() const { return ok_; }
  size_t remaining() const { return rest_.size(); }
  /// The bytes that have not been read yet.
  ConstBytes rest() const { return rest_; }

 private:
  bool has(size_t count) {
    if (ok_ && count <= rest_.size()) return true;
    ok_ = false;
    rest_ = {};
    return false;
  }

  template <std::unsigned_integral T>
  T integer() {
    if (!has(sizeof(T))) return 0;
    const T value = load_be<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  ConstBytes rest_;
  bool ok_ = true;
};

/// Writes network-order fields one after another. A write that does not fit writes nothing and
/// fails the writer for good.
class Writer {
 public:
  explicit Writer(Bytes target) : target_(target) {}

  void u8(uint8_t value) { integer(value); }
  void be16(uint16_t value) { integer(value); }
  void be32(uint32_t value) { integer(value); }
  void be64(uint64_t value) { integer(value); }

  void bytes(ConstBytes source) {
    if (!has(source.size())) return;
    if (!source.empty()) std::memcpy(target_.data() + written_, source.data(), source.size());
    written_ += source.size();
  }

  void zeros(size_t count) {
    if (!has(count)) return;
    if (count != 0) std::memset(target_.data() + written_, 0, count);
    written_ += count;
  }

  /// Steps over `count` bytes and leaves them as they are.
  void skip(size_t count) {
    if (has(count)) written_ += count;
  }

  bool ok() const { return ok_; }
  /// Bytes written so far.
  size_t written() const { return written_; }
  size_t remaining() const { return ok_ ? target_.size() - written_ : 0; }

 private:
  bool has(size_t count) {
    ok_ = ok_ && count <= target_.size() - written_;
    return ok_;
  }

  template <std::unsigned_integral T>
  void integer(T value) {
    if (!has(sizeof(T))) return;
    store_be<T>(target_.data() + written_, value);
    written_ += sizeof(T);
  }

  Bytes target_;
  size_t written_ = 0;
  bool ok_ = true;
};

}  // namespace diwarp
