// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/random.h"
#include "diwarp/types.h"
#include "rdmap/datagram.h"
#include "support/catch.h"
#include "unit/rdmap/altered.h"
#include "wire/golden_datagram.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

std::vector<std::vector<std::byte>> every_kind() {
  return {golden::datagram_send(),
          golden::datagram_solicited(),
          golden::datagram_empty(),
          golden::datagram_send_immediate(),
          golden::datagram_send_invalidate(),
          golden::datagram_solicited_invalidate(),
          golden::datagram_record(),
          golden::datagram_record_empty(),
          golden::datagram_read_request(),
          golden::datagram_read_response(),
          golden::control_challenge(),
          golden::control_echo(),
          golden::control_error_record(),
          golden::control_error_request(),
          golden::control_error_bare()};
}

/// The bytes of `inner` lie inside `outer`.
bool inside(ConstBytes inner, ConstBytes outer) {
  return inner.empty() || (inner.data() >= outer.data() &&
                           inner.data() + inner.size() <= outer.data() + outer.size());
}

/// The promises of a segment that was accepted, also where an attacker made it.
void check_segment(const DatagramSegment& segment, const dgram::OpenedEnvelope& envelope) {
  REQUIRE(info_of(segment.opcode).on_datagrams);
  REQUIRE(inside(segment.payload, envelope.body));
  REQUIRE(inside(segment.headers, envelope.body));
  REQUIRE((segment.has_immediate ? 8 : 0) + segment.headers.size() + segment.payload.size() ==
          envelope.body.size());
  REQUIRE(flags_of(segment) == envelope.labels.flags);
  const uint64_t end = uint64_t{segment.message_offset} + segment.payload.size();
  REQUIRE(end <= kMaxMessage);
  if (segment.opcode == Opcode::write_record) {
    REQUIRE(end <= segment.message_length);
    REQUIRE(segment.message_length <= kMaxMessage);
    REQUIRE(segment.last == (end == segment.message_length));
    REQUIRE(segment.tagged_offset >= segment.message_offset);
  }
  if (segment.opcode == Opcode::read_request) {
    REQUIRE(segment.request.length <= kMaxReadRequest);
    REQUIRE(segment.payload.empty());
  }
}

/// Checks the datagram, and holds what was accepted against its promises and its own bytes: written
/// again, it is the same.
bool check_verdict(const std::vector<std::byte>& datagram) {
  const Verdict verdict = verdict_of(datagram);
  if (verdict.drop) return false;
  const uint32_t incarnation = verdict.envelope.labels.incarnation;
  if (verdict.envelope.labels.datagram_class == dgram::DatagramClass::control) {
    REQUIRE(inside(verdict.error.headers, verdict.envelope.body));
    parse_error_headers(verdict.error.headers);
    const dgram::ParsedControl& control = verdict.control;
    REQUIRE((control.type == dgram::ControlType::error
                 ? encoded(verdict.error, incarnation, datagram.size())
                 : encoded(control.type, control.challenge, incarnation)) == datagram);
    return true;
  }
  check_segment(verdict.segment, verdict.envelope);
  if (verdict.envelope.labels.datagram_class == dgram::DatagramClass::unreliable) {
    REQUIRE(encoded(verdict.segment, incarnation) == datagram);
  }
  return true;
}

}  // namespace

TEST_CASE("every single flipped bit drops a datagram") {
  for (auto datagram : every_kind()) {
    for (size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
      flip(datagram, bit);
      if (accepted(datagram)) FAIL("bit " << bit);
      flip(datagram, bit);
    }
    CHECK(accepted(datagram));
  }
}

TEST_CASE("every pair of flipped bits drops a datagram") {
  for (auto datagram : {golden::datagram_empty(), golden::control_error_bare()}) {
    for (size_t first = 0; first < 8 * datagram.size(); ++first) {
      flip(datagram, first);
      for (size_t second = first + 1; second < 8 * datagram.size(); ++second) {
        flip(datagram, second);
        if (accepted(datagram)) FAIL("bits " << first << " and " << second);
        flip(datagram, second);
      }
      flip(datagram, first);
    }
  }
}

TEST_CASE("every cut drops a datagram, whether its CRC fits again or not") {
  for (const auto& whole : every_kind()) {
    const Verdict verdict = verdict_of(whole);
    const size_t least = whole.size() - verdict.segment.payload.size();
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      CAPTURE(bytes);
      std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
      CHECK_FALSE(accepted(cut));
      if (bytes >= 4 && bytes < least) CHECK_FALSE(accepted(sealed(cut)));
    }
  }
}

TEST_CASE("a million random datagrams are all dropped") {
  Random random(20110516);
  std::array<std::byte, 96> buffer;
  const std::array prefixes{hex("20000000"), hex("20020000"), hex("20010000"),
                            hex("20030000"), hex("21000000"), hex("22000000")};
  for (int round = 0; round < 1000000; ++round) {
    const Bytes datagram = Bytes(buffer).first(random.below(buffer.size() + 1));
    for (std::byte& byte : datagram) byte = static_cast<std::byte>(random.next());
    if (datagram.size() >= 4 && random.chance(0.5)) {  // a good prefix, so that the CRC decides
      const auto& prefix = prefixes[random.below(prefixes.size())];
      std::copy(prefix.begin(), prefix.end(), datagram.begin());
    }
    if (accepted(datagram)) FAIL(round);
  }
}

TEST_CASE("a million random contents under a right CRC keep their promises if accepted") {
  Random random(5041);
  int accepted_count = 0;
  for (int round = 0; round < 1000000; ++round) {
    std::vector<std::byte> datagram(12 + random.below(80));
    for (std::byte& byte : datagram) byte = static_cast<std::byte>(random.next());
    const bool control = random.chance(0.2);
    put(datagram, 0, control ? "22000000" : "20000000");
    if (!control) datagram[1] = static_cast<std::byte>(random.below(4));
    const size_t header = 8 + (!control && (datagram[1] & std::byte{1}) != std::byte{0} ? 8 : 0);
    if (datagram.size() >= header + 4 && random.chance(0.9)) {  // versions that are right
      datagram[header] = (datagram[header] & std::byte{0xC0}) | std::byte{1};
      datagram[header + 1] = (datagram[header + 1] & std::byte{0x0F}) | std::byte{0x40};
      if (control) put(datagram, header + 1, "000000");
    }
    accepted_count += check_verdict(sealed(std::move(datagram))) ? 1 : 0;
  }
  CHECK(accepted_count > 1000);
}

TEST_CASE("a million mutated datagrams keep their promises if accepted") {
  Random random(20260001);
  const auto kinds = every_kind();
  int accepted_count = 0;
  for (int round = 0; round < 1000000; ++round) {
    std::vector<std::byte> datagram = kinds[random.below(kinds.size())];
    for (uint64_t change = random.below(3); change-- > 0;) {
      flip(datagram, random.below(8 * (datagram.size() - 4)));
    }
    if (random.chance(0.1)) datagram.resize(datagram.size() + random.below(5));
    if (random.chance(0.1)) datagram.resize(12 + random.below(datagram.size() - 11));
    if (random.chance(0.1)) put(datagram, datagram.size() - 8, "ffffffff");
    accepted_count += check_verdict(sealed(std::move(datagram))) ? 1 : 0;
  }
  CHECK(accepted_count > 100000);
}
