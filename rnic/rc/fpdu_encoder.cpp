// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/fpdu_encoder.h"

#include <algorithm>
#include <array>

#include "base/crc32c.h"
#include "rdmap/opcodes.h"

namespace diwarp::rnic {

namespace {

void encode_head(RcFpdu& fpdu, const RcMessage& message) {
  rdmap::StreamSegment segment = message.header;
  fpdu.segment.set_place(segment, segment.tagged_offset);
  mpa::encode_length(fpdu.ulpdu_bytes(), fpdu.head);
  const Bytes behind = Bytes(fpdu.head).subspan(mpa::kLengthBytes);
  const size_t header = rdmap::encode_header(segment, behind);
  std::copy_n(message.body.begin(), message.body_bytes, behind.subspan(header).begin());
}

}  // namespace

void FpduEncoder::start(const mpa::NegotiatedParameters& parameters, uint32_t max_fpdu) {
  crc_ = parameters.crc;
  // guard(rows:markers-if-asked): parameters.send_markers => false
  markers_ = parameters.send_markers;
  max_fpdu_ = max_fpdu;
  mulpdu_ = 0;
  position_ = 0;
}

void FpduEncoder::refresh_segment(const llp::Stream& stream, Time now) {
  // guard(rows:emss-followed): condition => mulpdu_ != 0
  if (mulpdu_ != 0 && now - measured_ < kSegmentRefresh) return;
  // guard(rows:max-fpdu): without max_fpdu_ != 0 ? max_fpdu_ :
  const size_t fpdu = max_fpdu_ != 0 ? max_fpdu_ : stream.maximum_segment();
  mulpdu_ = markers_ ? mpa::mulpdu_with_markers(fpdu) : mpa::mulpdu(fpdu);
  measured_ = now;
}

void FpduEncoder::cut(const RcMessage& message, uint64_t offset, RcFpdu& fpdu) const {
  const size_t header = ddp::header_bytes(rdmap::info_of(message.header.opcode).tagged);
  fpdu.segment = ddp::next_segment(message.length, offset, ddp::max_payload(mulpdu_, header));
  fpdu.head_bytes = static_cast<uint8_t>(mpa::kLengthBytes + header + message.body_bytes);
  const size_t ulpdu = fpdu.ulpdu_bytes();
  fpdu.trailer_bytes = static_cast<uint8_t>(mpa::pad_bytes(ulpdu) + mpa::kCrcBytes);
  fpdu.whole = static_cast<uint32_t>(mpa::fpdu_bytes(ulpdu));
}

void FpduEncoder::encode(RcFpdu& fpdu, const RcMessage& message,
                         std::span<const ConstBytes> payload, bool sealed) {
  encode_head(fpdu, message);
  fpdu.sealed = sealed || !crc_;
  if (sealed && crc_)
    seal(fpdu, payload);
  else
    mpa::encode_trailer(fpdu.ulpdu_bytes(), nullptr, fpdu.trailer);
  position_ += fpdu.whole;
}

void FpduEncoder::seal(RcFpdu& fpdu, std::span<const ConstBytes> payload) const {
  Crc32c crc;
  crc.update(fpdu.head_view());
  for (ConstBytes piece : payload) crc.update(piece);
  mpa::encode_trailer(fpdu.ulpdu_bytes(), &crc, fpdu.trailer);
  fpdu.sealed = true;
}

void FpduEncoder::encode_marked(RcFpdu& fpdu, const RcMessage& message,
                                std::span<const ConstBytes> payload, Bytes out) {
  encode_head(fpdu, message);
  std::array<ConstBytes, kMaxSge + 1> ulpdu;
  ulpdu[0] = fpdu.head_view().subspan(mpa::kLengthBytes);
  std::ranges::copy(payload, ulpdu.begin() + 1);
  fpdu.whole = static_cast<uint32_t>(
      mpa::encode_marked_fpdu(std::span(ulpdu).first(1 + payload.size()), position_, crc_, out));
  position_ += fpdu.whole;
}

void FpduEncoder::append_last(std::vector<std::byte>& bytes, ConstBytes ulpdu,
                              uint64_t position) const {
  const size_t before = bytes.size();
  if (markers_) {
    bytes.resize(before + mpa::marked_fpdu_bytes(ulpdu.size()));
    bytes.resize(before + mpa::encode_marked_fpdu({&ulpdu, 1}, position, crc_,
                                                  Bytes(bytes).subspan(before)));
    return;
  }
  bytes.resize(before + mpa::fpdu_bytes(ulpdu.size()));
  const Bytes out = Bytes(bytes).subspan(before);
  mpa::encode_length(ulpdu.size(), out);
  std::copy(ulpdu.begin(), ulpdu.end(), out.subspan(mpa::kLengthBytes).begin());
  const size_t covered = mpa::kLengthBytes + ulpdu.size();
  Crc32c crc;
  crc.update(out.first(covered));
  mpa::encode_trailer(ulpdu.size(), crc_ ? &crc : nullptr, out.subspan(covered));
}

}  // namespace diwarp::rnic
