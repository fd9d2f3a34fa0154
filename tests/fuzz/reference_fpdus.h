// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"

/// FPDUs and markers byte by byte, as RFC 5044 sections 4.1 to 4.4 describe them and as slowly as
/// that is: the model that the deframer is compared with.
namespace diwarp::fuzz {

using Octets = std::vector<std::byte>;

inline void append_be(Octets& out, uint32_t value, size_t width) {
  for (size_t i = width; i-- > 0;) out.push_back(static_cast<std::byte>(value >> 8 * i));
}

/// Appends FPDUs to a stream.
class ReferenceFramer {
 public:
  /// `wrong_pointers` is added to what each marker holds: 0 to 3 changes nothing for a receiver.
  ReferenceFramer(bool crc, bool markers) : crc_(crc), markers_(markers) {}

  void append(ConstBytes ulpdu, uint16_t wrong_pointers, bool wrong_crc) {
    Octets bytes;
    append_be(bytes, static_cast<uint32_t>(ulpdu.size()), 2);
    bytes.insert(bytes.end(), ulpdu.begin(), ulpdu.end());
    while (bytes.size() % 4 != 0) bytes.push_back(std::byte{0});
    begin_ = stream_.size();
    wrong_pointers_ = wrong_pointers;
    started_ = false;
    for (const std::byte byte : bytes) put(byte);
    put_crc(wrong_crc);
  }

  Octets& stream() { return stream_; }

 private:
  void put(std::byte byte) {
    mark_if_due();
    if (!started_) header_ = stream_.size();
    started_ = true;
    stream_.push_back(byte);
  }
  void mark_if_due() {
    if (!markers_ || stream_.size() % 512 != 0) return;
    const size_t distance = started_ ? stream_.size() - header_ : 0;
    append_be(stream_, 0, 2);
    append_be(stream_, static_cast<uint16_t>(distance + wrong_pointers_), 2);
  }
  void put_crc(bool wrong) {
    mark_if_due();
    const ConstBytes covered = ConstBytes(stream_).subspan(begin_);
    const uint32_t value = crc_ ? crc32c(covered) ^ (wrong ? 1u : 0u) : 0;
    for (size_t i = 0; i < 4; ++i) stream_.push_back(static_cast<std::byte>(value >> 8 * i));
  }

  const bool crc_;
  const bool markers_;
  Octets stream_;
  size_t begin_ = 0;   // of the FPDU, a marker before it included
  size_t header_ = 0;  // its length field
  uint16_t wrong_pointers_ = 0;
  bool started_ = false;
};

/// The FPDU at the front of a stream from `begin` on.
struct ReferenceFpdu {
  bool whole = false;
  bool right_crc = true;
  bool right_markers = true;
  Octets ulpdu = {};
  size_t end = 0;
};

class ReferenceDeframer {
 public:
  ReferenceDeframer(ConstBytes stream, bool crc, bool markers)
      : stream_(stream), crc_(crc), markers_(markers) {}

  ReferenceFpdu next(size_t begin) {
    at_ = begin;
    started_ = false;
    ReferenceFpdu fpdu;
    Octets length = take(2, fpdu);
    if (length.size() < 2) return fpdu;
    const size_t size =
        std::to_integer<size_t>(length[0]) << 8 | std::to_integer<size_t>(length[1]);
    fpdu.ulpdu = take(size, fpdu);
    take((4 - (2 + size) % 4) % 4, fpdu);
    skip_marker(fpdu);
    const size_t covered = at_;
    const Octets crc = take(4, fpdu);
    fpdu.whole = crc.size() == 4;
    if (fpdu.whole && crc_) fpdu.right_crc = crc_is_right(begin, covered, crc);
    fpdu.end = at_;
    return fpdu;
  }

 private:
  Octets take(size_t count, ReferenceFpdu& fpdu) {
    Octets bytes;
    for (; count > 0; --count) {
      skip_marker(fpdu);
      if (at_ >= stream_.size()) break;
      if (!started_) header_ = at_;
      started_ = true;
      bytes.push_back(stream_[at_++]);
    }
    return bytes;
  }
  void skip_marker(ReferenceFpdu& fpdu) {
    if (!markers_ || at_ % 512 != 0) return;
    if (at_ + 4 <= stream_.size()) {
      const size_t pointer = std::to_integer<size_t>(stream_[at_ + 2]) << 8 |
                             std::to_integer<size_t>(stream_[at_ + 3]);
      const size_t distance = started_ ? (at_ - header_) % 65536 : 0;
      fpdu.right_markers = fpdu.right_markers && pointer / 4 * 4 == distance;
    }
    at_ += 4;
  }
  bool crc_is_right(size_t begin, size_t end, const Octets& crc) const {
    const uint32_t value = crc32c(stream_.subspan(begin, end - begin));
    for (size_t i = 0; i < 4; ++i)
      if (crc[i] != static_cast<std::byte>(value >> 8 * i)) return false;
    return true;
  }

  const ConstBytes stream_;
  const bool crc_;
  const bool markers_;
  size_t at_ = 0;
  size_t header_ = 0;
  bool started_ = false;
};

}  // namespace diwarp::fuzz
