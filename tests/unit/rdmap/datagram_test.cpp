// SPDX-License-Identifier: Apache-2.0
#include "rdmap/datagram.h"

#include <array>

#include "diwarp/types.h"
#include "support/catch.h"
#include "unit/base/allocations.h"
#include "unit/rdmap/altered.h"
#include "wire/golden_datagram.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

/// The golden Send: prefix 0 to 7, DDP header 8 to 25, 12 bytes of payload, CRC from 38 on.
std::vector<std::byte> altered_send(size_t offset, std::string_view digits) {
  return altered(golden::datagram_send(), offset, digits);
}

Counter reason_with_crc(std::string_view digits) {
  auto datagram = golden::datagram_send();
  put(datagram, 38, digits);
  return reason_of(datagram);
}

}  // namespace

TEST_CASE("a datagram shorter than a prefix and a CRC is truncated") {
  auto datagram = hex("20000000 00000001 00000000");
  CHECK(reason_of(datagram) == Counter::drop_crc);
  while (!datagram.empty()) {
    datagram.pop_back();
    CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
}

TEST_CASE("a datagram shorter than an empty Send is truncated") {
  for (auto datagram = golden::datagram_empty(); datagram.size() > 12;) {
    datagram = shortened(datagram);
    CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
}

TEST_CASE("a byte cut off a Send is missed by the CRC") {
  for (auto datagram = golden::datagram_send(); datagram.size() > 12;) {
    datagram.pop_back();
    CHECK(reason_of(datagram) == Counter::drop_crc);
  }
}

TEST_CASE("a byte added to a Send is found by the CRC") {
  auto datagram = golden::datagram_send();
  datagram.push_back(std::byte{0});
  CHECK(reason_of(datagram) == Counter::drop_crc);
}

TEST_CASE("only version 2 of the format is read") {
  for (const char* first : {"00", "10", "30", "60", "a0", "f0"}) {
    CHECK(reason_of(altered_send(0, first)) == Counter::drop_version);
  }
}

TEST_CASE("only classes 0 to 2 are read") {
  for (const char* first : {"23", "24", "28", "2c", "2f"}) {
    CHECK(reason_of(altered_send(0, first)) == Counter::drop_class);
  }
  const auto reliable = altered_send(0, "21");
  CHECK(dgram::Envelope::open(reliable).labels.datagram_class == dgram::DatagramClass::reliable);
  CHECK(dgram::Envelope::open(reliable).body.size() == 30);
}

TEST_CASE("only the immediate and the solicited flag are read") {
  for (const char* flags : {"04", "08", "10", "20", "40", "80", "07", "ff"}) {
    CHECK(reason_of(altered_send(1, flags)) == Counter::drop_flags);
    auto reliable = altered_send(1, flags);
    put(reliable, 0, "21");
    CHECK(reason_of(reliable) == Counter::drop_flags);
  }
  CHECK(dgram::Envelope::open(altered_send(1, "03")).labels.flags == 3);
}

TEST_CASE("reserved bits of the prefix must be zero") {
  for (const char* reserved : {"0001", "0100", "8000", "0080", "ffff"}) {
    CHECK(reason_of(altered_send(2, reserved)) == Counter::drop_reserved);
  }
}

TEST_CASE("a wrong CRC drops") {
  CHECK(reason_with_crc("15b4b617") == Counter::drop_crc);
  CHECK(reason_with_crc("16b6b415") == Counter::drop_crc);  // the other byte order
  CHECK(reason_with_crc("00000000") == Counter::drop_crc);
}

TEST_CASE("only DDP version 1 is read") {
  for (const char* control : {"40", "42", "43"}) {
    CHECK(reason_of(altered_send(8, control)) == Counter::drop_ddp_version);
  }
}

TEST_CASE("reserved bits of the DDP header must be zero") {
  for (const char* control : {"45", "49", "51", "61", "7d"}) {
    CHECK(reason_of(altered_send(8, control)) == Counter::drop_reserved);
  }
}

TEST_CASE("reserved bits of the RDMAP header must be zero") {
  for (const char* control : {"53", "63", "73"}) {
    CHECK(reason_of(altered_send(9, control)) == Counter::drop_reserved);
  }
}

TEST_CASE("only RDMAP version 1 is read") {
  for (const char* control : {"03", "83", "c3"}) {
    CHECK(reason_of(altered_send(9, control)) == Counter::drop_rdmap_version);
  }
}

TEST_CASE("no opcode is read that has no place on datagrams") {
  for (const char* control : {"47", "48", "49", "4a", "4b", "4d", "4e", "4f"}) {
    CHECK(reason_of(altered_send(9, control)) == Counter::drop_opcode);
  }
  CHECK(reason_of(altered(golden::datagram_record(), 17, "40")) == Counter::drop_opcode);
}

TEST_CASE("an opcode comes only in its own form, tagged or untagged") {
  CHECK(reason_of(altered_send(8, "c1")) == Counter::drop_opcode);
  CHECK(reason_of(altered_send(9, "42")) == Counter::drop_opcode);
  CHECK(reason_of(altered_send(9, "4c")) == Counter::drop_opcode);
  CHECK(reason_of(altered(golden::datagram_read_request(), 8, "c1")) == Counter::drop_opcode);
  CHECK(reason_of(altered(golden::datagram_record(), 16, "01")) == Counter::drop_opcode);
}

TEST_CASE("a Send goes to queue number 0") {
  for (const char* queue : {"00000001", "00000002", "01000000", "ffffffff"}) {
    CHECK(reason_of(altered_send(14, queue)) == Counter::drop_queue_number);
    CHECK(reason_of(altered(golden::datagram_send_invalidate(), 14, queue)) ==
          Counter::drop_queue_number);
  }
}

TEST_CASE("a Send's solicited flag and its opcode must agree") {
  CHECK(reason_of(altered_send(9, "45")) == Counter::drop_flags);
  CHECK(reason_of(altered_send(9, "46")) == Counter::drop_flags);
  CHECK(reason_of(altered_send(1, "02")) == Counter::drop_flags);
  CHECK(accepted(altered(altered_send(1, "02"), 9, "45")));
  CHECK(accepted(altered(altered_send(1, "02"), 9, "46")));
}

TEST_CASE("immediate data must be there where their flag is") {
  for (auto datagram = golden::datagram_send_immediate(); datagram.size() > 12;) {
    datagram = shortened(datagram);
    if (datagram.size() < 38) CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
  // Without the flag, or with one that is wrong, the bytes after it are no DDP header.
  CHECK_FALSE(accepted(altered(golden::datagram_send_immediate(), 1, "00")));
  CHECK_FALSE(accepted(altered_send(1, "01")));
}

TEST_CASE("no segment of a Send reaches beyond the longest message") {
  // 12 bytes of payload; the longest message has 2^30.
  CHECK(accepted(altered_send(22, "3ffffff4")));
  CHECK(reason_of(altered_send(22, "3ffffff5")) == Counter::drop_oversized);
  CHECK(reason_of(altered_send(22, "40000000")) == Counter::drop_oversized);
  CHECK(reason_of(altered_send(22, "fffffff4")) == Counter::drop_oversized);  // the end is 2^32
  CHECK(reason_of(altered_send(22, "ffffffff")) == Counter::drop_oversized);
  static_assert(kMaxMessage == 0x40000000);
}

TEST_CASE("of two faults the first in order is counted") {
  std::vector<std::byte> datagram = golden::datagram_send();
  // From the last guard to the first; each new fault hides those before.
  const auto reason_after = [&](size_t offset, std::string_view digits) {
    datagram = altered(datagram, offset, digits);
    return reason_of(datagram);
  };
  CHECK(reason_after(22, "ffffffff") == Counter::drop_oversized);
  CHECK(reason_after(1, "02") == Counter::drop_flags);
  CHECK(reason_after(14, "00000002") == Counter::drop_queue_number);
  CHECK(reason_after(9, "47") == Counter::drop_opcode);
  CHECK(reason_after(9, "87") == Counter::drop_rdmap_version);
  CHECK(reason_after(8, "45") == Counter::drop_reserved);
  CHECK(reason_after(8, "46") == Counter::drop_ddp_version);
  flip(datagram, 8 * datagram.size() - 1);
  CHECK(reason_of(datagram) == Counter::drop_crc);
  put(datagram, 2, "0001");
  CHECK(reason_of(datagram) == Counter::drop_reserved);
  put(datagram, 1, "04");
  CHECK(reason_of(datagram) == Counter::drop_flags);
  put(datagram, 0, "23");
  CHECK(reason_of(datagram) == Counter::drop_class);
  put(datagram, 0, "13");
  CHECK(reason_of(datagram) == Counter::drop_version);
  datagram.resize(11);
  CHECK(reason_of(datagram) == Counter::drop_truncated);
}

TEST_CASE("a segment of a reliable datagram is read without its prefix") {
  const auto datagram = golden::datagram_record();
  const ParsedSegment parsed =
      parse_segment(3, ConstBytes(datagram).subspan(8, datagram.size() - 12));
  REQUIRE(parsed.valid);
  CHECK(parsed.segment.message_length == 16);
}

TEST_CASE("datagrams are written and checked without the heap") {
  std::array<std::byte, 128> buffer{};
  const auto good = golden::datagram_record();
  const auto bad = altered_send(9, "47");
  const auto control = golden::control_error_record();
  const Verdict cause = verdict_of(good);
  const size_t before = allocations();
  const DatagramSegment segment{.opcode = Opcode::read_request, .last = true};
  constexpr size_t kPrefix = dgram::Envelope::kPrefixBytes;
  const size_t covered = kPrefix + encode_segment_headers(segment, Bytes(buffer).subspan(kPrefix));
  const size_t whole =
      dgram::Envelope::seal({.flags = flags_of(segment), .incarnation = 1},
                            Bytes(buffer).first(covered), {}, Bytes(buffer).subspan(covered));
  const bool as_expected = accepted(Bytes(buffer).first(whole)) && accepted(good) &&
                           accepted(control) && !accepted(bad) &&
                           !accepted(ConstBytes(good).first(3));
  const size_t error = encode_error(report_of({1, 1, 0}, cause.segment), 48, Bytes(buffer));
  CHECK(allocations() == before);
  CHECK(as_expected);
  CHECK(whole == 58);
  CHECK(error == 32);
}
