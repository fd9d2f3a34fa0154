// SPDX-License-Identifier: Apache-2.0
#include "rdmap/datagram.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "base/crc32c.h"
#include "base/random.h"
#include "diwarp/types.h"
#include "unit/base/allocations.h"
#include "wire/golden.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace Catch {
template <>
struct StringMaker<Counter> {
  static std::string convert(Counter counter) { return std::string(Counters::name(counter)); }
};
}  // namespace Catch

namespace {

std::vector<std::byte> sealed(std::vector<std::byte> datagram) {
  const ConstBytes covered = ConstBytes(datagram).first(datagram.size() - 4);
  encode_datagram_crc(crc32c(covered), Bytes(datagram).last(4));
  return datagram;
}

/// The golden Send with other bytes from `offset` on and, if `seal`, the CRC that goes with them.
std::vector<std::byte> altered(size_t offset, std::string_view digits, bool seal = true) {
  auto datagram = golden::datagram_send();
  const auto bytes = hex(digits);
  std::copy(bytes.begin(), bytes.end(), datagram.begin() + static_cast<std::ptrdiff_t>(offset));
  return seal ? sealed(datagram) : datagram;
}

Counter reason_of(const std::vector<std::byte>& datagram) {
  const ParsedDatagram parsed = parse_datagram(datagram);
  REQUIRE_FALSE(parsed.valid);
  return parsed.drop_reason;
}

void flip(std::vector<std::byte>& bytes, size_t bit) {
  bytes[bit / 8] ^= std::byte{0x80} >> (bit % 8);
}

}  // namespace

TEST_CASE("what is shorter than an empty Send is truncated") {
  auto datagram = golden::datagram_empty();
  REQUIRE(parse_datagram(datagram).valid);
  while (!datagram.empty()) {
    datagram.pop_back();
    CHECK(reason_of(datagram) == Counter::drop_truncated);
  }
}

TEST_CASE("what is cut off a Send is missed by the CRC") {
  for (auto datagram = golden::datagram_send(); datagram.size() > 30;) {
    datagram.pop_back();
    CHECK(reason_of(datagram) == Counter::drop_crc);
  }
}

TEST_CASE("what is added to a Send is found by the CRC") {
  auto datagram = golden::datagram_send();
  datagram.push_back(std::byte{0});
  CHECK(reason_of(datagram) == Counter::drop_crc);
}

TEST_CASE("only version 1 of the format is read") {
  for (const char* first : {"00", "20", "30", "90", "f0"}) {
    CHECK(reason_of(altered(0, first)) == Counter::drop_version);
  }
}

TEST_CASE("only class 0 is read") {
  for (const char* first : {"11", "12", "13", "14", "1f"}) {
    CHECK(reason_of(altered(0, first)) == Counter::drop_class);
  }
}

TEST_CASE("only the solicited flag is read") {
  for (const char* flags : {"01", "04", "08", "10", "20", "40", "80", "03", "ff"}) {
    CHECK(reason_of(altered(1, flags)) == Counter::drop_flags);
  }
}

TEST_CASE("reserved bits of the prefix must be zero") {
  for (const char* reserved : {"0001", "0100", "8000", "0080", "ffff"}) {
    CHECK(reason_of(altered(2, reserved)) == Counter::drop_reserved);
  }
}

TEST_CASE("a wrong CRC drops") {
  CHECK(reason_of(altered(38, "59de6a66", false)) == Counter::drop_crc);
  CHECK(reason_of(altered(38, "676ade59", false)) == Counter::drop_crc);  // the other byte order
  CHECK(reason_of(altered(38, "00000000", false)) == Counter::drop_crc);
}

TEST_CASE("only DDP version 1 is read") {
  for (const char* control : {"40", "42", "43"}) {
    CHECK(reason_of(altered(8, control)) == Counter::drop_ddp_version);
  }
}

TEST_CASE("reserved bits of the DDP header must be zero") {
  for (const char* control : {"45", "49", "51", "61", "7d"}) {
    CHECK(reason_of(altered(8, control)) == Counter::drop_reserved);
  }
}

TEST_CASE("reserved bits of the RDMAP header must be zero") {
  for (const char* control : {"53", "63", "73"}) {
    CHECK(reason_of(altered(9, control)) == Counter::drop_reserved);
  }
}

TEST_CASE("only RDMAP version 1 is read") {
  for (const char* control : {"03", "83", "c3"}) {
    CHECK(reason_of(altered(9, control)) == Counter::drop_rdmap_version);
  }
}

TEST_CASE("only Send opcodes without invalidate are read") {
  for (const char* control :
       {"40", "41", "42", "44", "46", "47", "48", "49", "4a", "4b", "4c", "4d", "4e", "4f"}) {
    CHECK(reason_of(altered(9, control)) == Counter::drop_opcode);
  }
}

TEST_CASE("a Send must not be tagged") {
  CHECK(reason_of(altered(8, "c1")) == Counter::drop_opcode);
}

TEST_CASE("a Send goes to queue number 0") {
  for (const char* queue : {"00000001", "00000002", "01000000", "ffffffff"}) {
    CHECK(reason_of(altered(14, queue)) == Counter::drop_queue_number);
  }
}

TEST_CASE("the solicited flag and the opcode must agree") {
  CHECK(reason_of(altered(9, "45")) == Counter::drop_flags);
  CHECK(reason_of(altered(1, "02")) == Counter::drop_flags);
  auto both = altered(1, "02");
  both[9] = std::byte{0x45};
  CHECK(parse_datagram(sealed(both)).valid);
}

TEST_CASE("no segment reaches beyond the longest message") {
  // 12 bytes of payload; the longest message has 2^30.
  CHECK(parse_datagram(altered(22, "3ffffff4")).valid);
  CHECK(reason_of(altered(22, "3ffffff5")) == Counter::drop_oversized);
  CHECK(reason_of(altered(22, "40000000")) == Counter::drop_oversized);
  CHECK(reason_of(altered(22, "fffffff4")) == Counter::drop_oversized);  // the end is 2^32
  CHECK(reason_of(altered(22, "ffffffff")) == Counter::drop_oversized);
  static_assert(kMaxMessage == 0x40000000);
}

TEST_CASE("of two faults the first in order is counted") {
  std::vector<std::byte> datagram = golden::datagram_send();
  // From the last guard to the first; each new fault hides those before.
  const auto put = [&](size_t offset, std::string_view digits) {
    const auto bytes = hex(digits);
    std::copy(bytes.begin(), bytes.end(), datagram.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  put(22, "ffffffff");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_oversized);
  put(1, "02");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_flags);
  put(14, "00000001");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_queue_number);
  put(9, "44");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_opcode);
  put(9, "84");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_rdmap_version);
  put(8, "45");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_reserved);
  put(8, "46");
  CHECK(reason_of(sealed(datagram)) == Counter::drop_ddp_version);
  datagram = sealed(datagram);
  flip(datagram, 8 * datagram.size() - 1);
  CHECK(reason_of(datagram) == Counter::drop_crc);
  put(2, "0001");
  CHECK(reason_of(datagram) == Counter::drop_reserved);
  put(1, "01");
  CHECK(reason_of(datagram) == Counter::drop_flags);
  put(0, "11");
  CHECK(reason_of(datagram) == Counter::drop_class);
  put(0, "21");
  CHECK(reason_of(datagram) == Counter::drop_version);
  datagram.resize(29);
  CHECK(reason_of(datagram) == Counter::drop_truncated);
}

TEST_CASE("every single flipped bit drops a datagram") {
  for (auto datagram :
       {golden::datagram_send(), golden::datagram_solicited(), golden::datagram_empty()}) {
    for (size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
      flip(datagram, bit);
      if (parse_datagram(datagram).valid) FAIL("bit " << bit);
      flip(datagram, bit);
    }
    CHECK(parse_datagram(datagram).valid);
  }
}

TEST_CASE("every pair of flipped bits drops a datagram") {
  auto datagram = golden::datagram_empty();
  for (size_t first = 0; first < 8 * datagram.size(); ++first) {
    flip(datagram, first);
    for (size_t second = first + 1; second < 8 * datagram.size(); ++second) {
      flip(datagram, second);
      if (parse_datagram(datagram).valid) FAIL("bits " << first << " and " << second);
      flip(datagram, second);
    }
    flip(datagram, first);
  }
}

TEST_CASE("a million random datagrams are all dropped") {
  Random random(20110516);
  std::array<std::byte, 96> buffer;
  for (int round = 0; round < 1000000; ++round) {
    const Bytes datagram = Bytes(buffer).first(random.below(buffer.size() + 1));
    for (std::byte& byte : datagram) byte = static_cast<std::byte>(random.next());
    if (datagram.size() >= 4 && random.chance(0.5)) {  // a good prefix, so that the CRC decides
      const auto prefix = hex(random.chance(0.5) ? "10000000" : "10020000");
      std::copy(prefix.begin(), prefix.end(), datagram.begin());
    }
    if (parse_datagram(datagram).valid) FAIL(round);
  }
}

TEST_CASE("random headers under a right CRC are accepted only when each field is right") {
  Random random(5041);
  int accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    auto datagram = golden::datagram_send();
    for (int change = 0; change < 3; ++change) flip(datagram, random.below(8 * 38));
    datagram = sealed(std::move(datagram));
    const ParsedDatagram parsed = parse_datagram(datagram);
    if (!parsed.valid) continue;
    ++accepted;
    const bool solicited = datagram[1] == std::byte{2};
    REQUIRE(datagram[0] == std::byte{0x10});
    REQUIRE((solicited || datagram[1] == std::byte{0}));
    REQUIRE(copy(ConstBytes(datagram).subspan(2, 2)) == hex("0000"));
    REQUIRE((datagram[8] == std::byte{0x41} || datagram[8] == std::byte{0x01}));
    REQUIRE(datagram[9] == (solicited ? std::byte{0x45} : std::byte{0x43}));
    REQUIRE(copy(ConstBytes(datagram).subspan(14, 4)) == hex("00000000"));
    REQUIRE(parsed.segment.message_offset + parsed.segment.payload.size() <= kMaxMessage);
    REQUIRE(parsed.segment.payload.size() == 12);
  }
  CHECK(accepted > 1000);
}

TEST_CASE("datagrams are written and judged without the heap") {
  std::array<std::byte, 64> buffer{};
  const auto good = golden::datagram_send();
  const auto bad = altered(9, "47");
  const size_t before = allocations();
  encode_send_headers({.incarnation = 1, .last = true}, buffer);
  encode_datagram_crc(crc32c(Bytes(buffer).first(60)), Bytes(buffer).last(4));
  const bool as_expected = parse_datagram(buffer).valid && parse_datagram(good).valid &&
                           !parse_datagram(bad).valid &&
                           !parse_datagram(ConstBytes(good).first(3)).valid;
  CHECK(allocations() == before);
  CHECK(as_expected);
}
