// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "rdmap/datagram.h"

/// The library's codec of datagrams, for whole ones.
namespace diwarp::test {

/// What all steps of parsing together make of a datagram of class UD or control.
struct Verdict {
  std::optional<Counter> drop = {};
  rdmap::Envelope envelope = {};
  rdmap::DatagramSegment segment = {};
  rdmap::ControlMessage control = {};
};

inline Verdict judge(ConstBytes datagram) {
  const rdmap::ParsedEnvelope outer = rdmap::parse_envelope(datagram);
  if (!outer.valid) return {.drop = outer.drop_reason};
  Verdict verdict{.envelope = outer.envelope};
  if (outer.envelope.datagram_class == rdmap::DatagramClass::control) {
    const rdmap::ParsedControl inner = rdmap::parse_control(outer.envelope.body);
    if (!inner.valid) verdict.drop = inner.drop_reason;
    verdict.control = inner.message;
    return verdict;
  }
  const rdmap::ParsedSegment inner =
      rdmap::parse_segment(outer.envelope.flags, outer.envelope.body);
  if (!inner.valid) verdict.drop = inner.drop_reason;
  verdict.segment = inner.segment;
  return verdict;
}

/// The datagram with the CRC that goes with its other bytes.
inline std::vector<std::byte> sealed(std::vector<std::byte> datagram) {
  const size_t covered = datagram.size() - rdmap::kDatagramCrcBytes;
  rdmap::encode_datagram_crc(crc32c(ConstBytes(datagram).first(covered)),
                             Bytes(datagram).subspan(covered));
  return datagram;
}

inline std::vector<std::byte> encoded(const rdmap::DatagramSegment& segment, uint32_t incarnation) {
  std::vector<std::byte> out(rdmap::kPrefixBytes +
                             rdmap::segment_header_bytes(segment.opcode, segment.has_immediate));
  const size_t prefix = rdmap::encode_prefix(rdmap::DatagramClass::unreliable,
                                             rdmap::flags_of(segment), incarnation, out);
  out.resize(prefix + rdmap::encode_segment_headers(segment, Bytes(out).subspan(prefix)));
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  out.resize(out.size() + rdmap::kDatagramCrcBytes);
  return sealed(std::move(out));
}

/// The message in at most `limit` bytes; nothing if it does not fit.
inline std::vector<std::byte> encoded(const rdmap::ControlMessage& message, uint32_t incarnation,
                                      size_t limit = 256) {
  std::vector<std::byte> out(256);
  const size_t prefix = rdmap::encode_prefix(rdmap::DatagramClass::control, 0, incarnation, out);
  const size_t content = rdmap::encode_control(message, limit, Bytes(out).subspan(prefix));
  if (content == 0) return {};
  out.resize(prefix + content + rdmap::kDatagramCrcBytes);
  return sealed(std::move(out));
}

}  // namespace diwarp::test
