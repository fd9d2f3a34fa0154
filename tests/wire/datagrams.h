// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/crc32c.h"
#include "dgram/control.h"
#include "dgram/envelope.h"
#include "rdmap/datagram.h"

/// The library's codec of datagrams, for whole ones.
namespace diwarp::test {

/// What all steps of parsing together make of a datagram of class UD or control.
struct Verdict {
  std::optional<Counter> drop = {};
  dgram::OpenedEnvelope envelope = {};
  rdmap::DatagramSegment segment = {};
  dgram::ParsedControl control = {};
  rdmap::ErrorReport error = {};  ///< of a control message of that type
};

inline Verdict control_verdict(Verdict verdict) {
  verdict.control = dgram::parse_control(verdict.envelope.body);
  if (!verdict.control.valid) verdict.drop = verdict.control.drop_reason;
  if (verdict.drop || verdict.control.type != dgram::ControlType::error) return verdict;
  const rdmap::ParsedError parsed = rdmap::parse_error(verdict.control.rest);
  if (!parsed.valid) verdict.drop = parsed.drop_reason;
  verdict.error = parsed.error;
  return verdict;
}

inline Verdict verdict_of(ConstBytes datagram) {
  Verdict verdict{.envelope = dgram::Envelope::open(datagram)};
  if (!verdict.envelope.valid) {
    verdict.drop = verdict.envelope.drop_reason;
    return verdict;
  }
  const dgram::Labels& labels = verdict.envelope.labels;
  if (labels.datagram_class == dgram::DatagramClass::control) return control_verdict(verdict);
  const rdmap::ParsedSegment inner = rdmap::parse_segment(labels.flags, verdict.envelope.body);
  if (!inner.valid) verdict.drop = inner.drop_reason;
  verdict.segment = inner.segment;
  return verdict;
}

/// The datagram with the CRC that goes with its other bytes.
inline std::vector<std::byte> sealed(std::vector<std::byte> datagram) {
  const size_t covered = datagram.size() - dgram::Envelope::kTrailerBytes;
  store_crc32c(datagram.data() + covered, crc32c(ConstBytes(datagram).first(covered)));
  return datagram;
}

/// A whole datagram: prefix, `body`, `payload`, CRC.
inline std::vector<std::byte> sealed(const dgram::Labels& labels, ConstBytes body,
                                     ConstBytes payload = {}) {
  std::vector<std::byte> front(dgram::Envelope::kPrefixBytes);
  front.insert(front.end(), body.begin(), body.end());
  std::array<std::byte, dgram::Envelope::kTrailerBytes> trailer;
  dgram::Envelope::seal(labels, front, {&payload, 1}, trailer);
  front.insert(front.end(), payload.begin(), payload.end());
  front.insert(front.end(), trailer.begin(), trailer.end());
  return front;
}

inline std::vector<std::byte> encoded(const rdmap::DatagramSegment& segment, uint32_t incarnation) {
  std::vector<std::byte> headers(
      rdmap::segment_header_bytes(segment.opcode, segment.has_immediate));
  headers.resize(rdmap::encode_segment_headers(segment, headers));
  return sealed({.flags = rdmap::flags_of(segment), .incarnation = incarnation}, headers,
                segment.payload);
}

/// A Challenge or an Echo.
inline std::vector<std::byte> encoded(dgram::ControlType type, const dgram::Challenge& challenge,
                                      uint32_t incarnation) {
  std::vector<std::byte> body(dgram::kChallengeBytes);
  body.resize(dgram::encode_challenge(type, challenge, body));
  return sealed({.datagram_class = dgram::DatagramClass::control, .incarnation = incarnation},
                body);
}

/// The Error in a datagram of at most `limit` bytes; nothing if it does not fit.
inline std::vector<std::byte> encoded(const rdmap::ErrorReport& error, uint32_t incarnation,
                                      size_t limit = 256) {
  constexpr size_t kAround = dgram::Envelope::kOverhead + dgram::kControlHeaderBytes;
  if (limit < kAround) return {};
  std::vector<std::byte> body(256);
  const size_t header = dgram::encode_control_header(dgram::ControlType::error, body);
  const size_t content = rdmap::encode_error(error, limit - kAround, Bytes(body).subspan(header));
  if (content == 0) return {};
  body.resize(header + content);
  return sealed({.datagram_class = dgram::DatagramClass::control, .incarnation = incarnation},
                body);
}

}  // namespace diwarp::test
