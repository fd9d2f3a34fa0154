// SPDX-License-Identifier: Apache-2.0
#include "mpa/fpdu.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "base/byte_order.h"

namespace diwarp::mpa {
namespace {

constexpr size_t kFraming = kLengthBytes + kCrcBytes;

constexpr std::array<std::byte, kMaxPad> kZeros{};

Deframed incomplete(size_t needed) {
  return {.status = DeframeStatus::incomplete, .needed = needed};
}

/// An FPDU is a multiple of four.
constexpr size_t usable_bytes(size_t emss) { return emss / 4 * 4; }

/// The MULPDU of an EMSS of which so many bytes are usable, and so many of these are overhead.
constexpr size_t mulpdu_of(size_t usable, size_t overhead) {
  // guard(rows:mulpdu-range): std::min(usable - overhead, kMaxMulpdu) => usable - overhead
  // guard(rows:mulpdu-range): kMinMulpdu + overhead ? kMinMulpdu => overhead ? 0
  return usable < kMinMulpdu + overhead ? kMinMulpdu : std::min(usable - overhead, kMaxMulpdu);
}

constexpr size_t ceil_divide(size_t value, size_t by) {
  return value / by + (value % by != 0 ? 1 : 0);
}

// --- Markers.

/// Bytes between two markers.
constexpr size_t kBetweenMarkers = kMarkerSpacing - kMarkerBytes;

/// Bytes of the stream before its next marker; 0: it is due.
constexpr size_t until_marker(uint64_t position) {
  // guard(rows:marker-spacing): position => (position + 4)
  return static_cast<size_t>((kMarkerSpacing - position % kMarkerSpacing) % kMarkerSpacing);
}

/// Bytes that `count` bytes take in the stream from `position` on. A marker that would follow the
/// last one belongs to the next FPDU.
constexpr size_t marked_bytes(uint64_t position, size_t count) {
  const size_t before = until_marker(position);
  if (count <= before) return count;  // guard(fpdu)
  return count + kMarkerBytes * ceil_divide(count - before, kBetweenMarkers);
}

/// Where the length field stands: behind a marker that is due.
constexpr size_t header_offset(uint64_t position) {
  return until_marker(position) == 0 ? kMarkerBytes : 0;
}

/// The content of a marker so many bytes into an FPDU: the distance from the length field, markers
/// counted; 0 in front of it.
constexpr uint16_t marker_pointer(size_t offset, size_t header) {
  // guard(fpdu): => return static_cast<uint16_t>(offset);
  return offset < header ? 0 : static_cast<uint16_t>(offset - header);
}

/// The bits of a marker that tell that distance. A sender's other two are zero, since FPDUs are
/// multiples of four; a receiver treats them as zero (RFC 5044 section 4.3).
constexpr uint16_t kPointerMask = 0xfffc;

/// Writes an FPDU's bytes, with markers where they are due.
class MarkedWriter {
 public:
  MarkedWriter(uint64_t position, Bytes out)
      : position_(position), header_(header_offset(position)), out_(out) {}

  void put(ConstBytes bytes) {
    while (!bytes.empty()) {
      mark_if_due();
      const size_t count = std::min(bytes.size(), until_marker(position_ + written_));
      assert(written_ + count <= out_.size());
      std::memcpy(out_.data() + written_, bytes.data(), count);
      written_ += count;
      bytes = bytes.subspan(count);
    }
  }

  void mark_if_due() {
    if (until_marker(position_ + written_) != 0) return;
    assert(written_ + kMarkerBytes <= out_.size());
    store_be<uint16_t>(out_.data() + written_, 0);  // guard(rows:marker-layout): 0 => 1
    // guard(rows:marker-layout): header_ => 0
    store_be(out_.data() + written_ + 2, marker_pointer(written_, header_));
    written_ += kMarkerBytes;
  }

  ConstBytes written() const { return out_.first(written_); }

 private:
  const uint64_t position_;
  const size_t header_;
  Bytes out_;
  size_t written_ = 0;
};

/// Copies what is no marker. Returns whether every marker points to the length field; the reserved
/// half of one may hold anything (RFC 5044 section 4.2).
bool remove_markers(uint64_t position, ConstBytes fpdu, std::byte* out) {
  const size_t header = header_offset(position);
  bool right = true;
  for (size_t at = 0; at < fpdu.size();) {
    if (until_marker(position + at) == 0) {
      const auto pointer = load_be<uint16_t>(fpdu.data() + at + 2);
      // guard(fpdu): without right &&
      // guard(rows:marker-layout): = right => = right && load_be<uint16_t>(fpdu.data() + at) == 0
      // guard(rows:marker-low-bits): (pointer & kPointerMask) => pointer
      right = right && (pointer & kPointerMask) == marker_pointer(at, header);
      at += kMarkerBytes;  // guard(rows:markers-removed)
    }
    const size_t until = until_marker(position + at);
    const size_t count = std::min(fpdu.size() - at, until);
    std::memcpy(out, fpdu.data() + at, count);
    out += count;
    at += count;
  }
  return right;
}

bool crc_is_right(ConstBytes fpdu) {
  const size_t covered = fpdu.size() - kCrcBytes;
  // guard(rows:crc-checked): => return true;
  return crc32c(fpdu.first(covered)) == load_crc32c(fpdu.data() + covered);
}

}  // namespace

size_t mulpdu(size_t emss) { return mulpdu_of(usable_bytes(emss), kFraming); }

size_t mulpdu_with_markers(size_t emss) {
  const size_t usable = usable_bytes(emss);
  // guard(rows:mulpdu-markers): => return mulpdu_of(usable, kFraming);
  return mulpdu_of(usable, kFraming + kMarkerBytes * ceil_divide(usable, kMarkerSpacing));
}

size_t marked_fpdu_bytes(size_t ulpdu) { return marked_bytes(0, fpdu_bytes(ulpdu)); }

void encode_length(size_t ulpdu, Bytes out) {
  assert(ulpdu <= kMaxUlpdu && out.size() >= kLengthBytes);
  // guard(rows:length-field): ulpdu => ulpdu + kLengthBytes
  store_be(out.data(), static_cast<uint16_t>(ulpdu));
}

size_t encode_trailer(size_t ulpdu, const Crc32c* crc, Bytes out) {
  const size_t pad = pad_bytes(ulpdu);
  assert(out.size() >= pad + kCrcBytes);
  std::memset(out.data(), 0, pad + kCrcBytes);  // guard(rows:padding-zero): 0 => 1
  if (crc != nullptr) {
    Crc32c whole = *crc;
    whole.update(ConstBytes(kZeros).first(pad));  // guard(rows:crc-covers)
    store_crc32c(out.data() + pad, whole.value());
  }
  return pad + kCrcBytes;
}

size_t encode_marked_fpdu(std::span<const ConstBytes> ulpdu, uint64_t position, bool crc,
                          Bytes out) {
  assert(position % 4 == 0);
  size_t length = 0;
  for (const ConstBytes piece : ulpdu) length += piece.size();
  std::array<std::byte, kLengthBytes> header;
  encode_length(length, header);

  MarkedWriter writer(position, out);
  writer.put(header);
  for (const ConstBytes piece : ulpdu) writer.put(piece);
  writer.put(ConstBytes(kZeros).first(pad_bytes(length)));
  // guard(rows:crc-covers)
  writer.mark_if_due();  // in front of the CRC, which covers it
  std::array<std::byte, kCrcBytes> trailer{};
  if (crc) store_crc32c(trailer.data(), crc32c(writer.written()));
  writer.put(trailer);
  return writer.written().size();
}

Deframer::Deframer(bool check_crc, bool markers) : check_crc_(check_crc), markers_(markers) {}

Deframed Deframer::next(ConstBytes stream) {
  if (markers_) return next_marked(stream);
  // guard(rows:incomplete-waits)
  if (stream.size() < kLengthBytes) return incomplete(fpdu_bytes(0));
  const size_t length = load_be<uint16_t>(stream.data());
  const size_t whole = fpdu_bytes(length);
  if (stream.size() < whole) return incomplete(whole);  // guard(fpdu)
  // guard(rows:padding-zero): first if (pad_bytes(length) != 0 && stream[kLengthBytes + length] !=
  //     std::byte{0}) return {.status = DeframeStatus::bad_crc};
  // guard(rows:crc-field-off): without checks_front() &&
  if (checks_front() && !crc_is_right(stream.first(whole)))
    return {.status = DeframeStatus::bad_crc};
  // guard(rows:ulpdu-length): length => length + pad_bytes(length)
  return {.status = DeframeStatus::fpdu,
          .ulpdu = stream.subspan(kLengthBytes, length),
          .consumed = whole};
}

std::optional<PartialFpdu> Deframer::partial_fpdu(ConstBytes stream) const {
  if (!allows_partial() || stream.size() < kLengthBytes) return std::nullopt;
  const size_t length = load_be<uint16_t>(stream.data());
  const ConstBytes there = stream.subspan(kLengthBytes);
  if (there.size() >= length) return std::nullopt;
  return PartialFpdu{there, length - there.size(), pad_bytes(length) + kCrcBytes};
}

// Every FPDU is a multiple of four, so no marker falls into a length field or a CRC.
Deframed Deframer::next_marked(ConstBytes stream) {
  const size_t header = header_offset(position_);
  if (stream.size() < header + kLengthBytes)  // guard(fpdu): without header +
    return incomplete(marked_bytes(position_, fpdu_bytes(0)));
  const size_t length = load_be<uint16_t>(stream.data() + header);
  const size_t whole = marked_bytes(position_, fpdu_bytes(length));
  if (stream.size() < whole) return incomplete(whole);  // guard(fpdu)

  const ConstBytes fpdu = stream.first(whole);
  // guard(fpdu): without check_crc_ &&
  // guard(fpdu): condition => false
  if (check_crc_ && !crc_is_right(fpdu)) return {.status = DeframeStatus::bad_crc};
  unmarked_.resize(std::max(unmarked_.size(), fpdu_bytes(length)));
  // guard(rows:marker-checked): condition => remove_markers(position_, fpdu, unmarked_.data()),
  //     false
  if (!remove_markers(position_, fpdu, unmarked_.data()))
    return {.status = DeframeStatus::bad_marker};
  return {.status = DeframeStatus::fpdu,
          .ulpdu = ConstBytes(unmarked_).subspan(kLengthBytes, length),
          .consumed = whole};
}

}  // namespace diwarp::mpa
