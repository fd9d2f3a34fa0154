// SPDX-License-Identifier: Apache-2.0
#include "mpa/fpdu.h"

#include <algorithm>

#include "base/random.h"
#include "support/catch.h"
#include "support/contents.h"
#include "wire/golden.h"

using namespace diwarp;
using namespace diwarp::mpa;
using namespace diwarp::test;

namespace {

std::vector<std::byte> fpdu_of(ConstBytes ulpdu) {
  std::vector<std::byte> out(fpdu_bytes(ulpdu.size()));
  const Bytes bytes(out);
  encode_length(ulpdu.size(), bytes);
  std::copy(ulpdu.begin(), ulpdu.end(), out.begin() + kLengthBytes);
  Crc32c crc;
  crc.update(bytes.first(kLengthBytes + ulpdu.size()));
  encode_trailer(ulpdu.size(), &crc, bytes.subspan(kLengthBytes + ulpdu.size()));
  return out;
}

/// A deframer without markers, which has no state.
Deframed deframe(ConstBytes stream, bool check_crc) {
  return Deframer(check_crc, false).next(stream);
}

std::vector<std::vector<std::byte>> golden_fpdus() {
  return {golden::fpdu_empty_send(), golden::fpdu_send(), golden::fpdu_pad_1(),
          golden::fpdu_solicited_pad_2(), golden::fpdu_first_pad_3()};
}

}  // namespace

TEST_CASE("padding complements the length field and the ULPDU to a multiple of four") {
  CHECK(pad_bytes(0) == 2);
  CHECK(pad_bytes(1) == 1);
  CHECK(pad_bytes(2) == 0);
  CHECK(pad_bytes(3) == 3);
  CHECK(pad_bytes(4) == 2);
  CHECK(pad_bytes(65535) == 3);
  for (size_t ulpdu = 0; ulpdu <= 1000; ++ulpdu) {
    CHECK(pad_bytes(ulpdu) <= kMaxPad);
    CHECK(fpdu_bytes(ulpdu) % 4 == 0);
  }
}

TEST_CASE("the beginning of an FPDU may be used where neither CRC nor markers have to be right") {
  const std::vector<std::byte> fpdu = fpdu_of(hex("00112233445566778899"));  // no padding: 2 + 10
  const Deframer free(false, false);
  CHECK_FALSE(free.partial_fpdu(ConstBytes(fpdu).first(1)));
  for (size_t there = 2; there < 12; ++there) {
    const ConstBytes stream = ConstBytes(fpdu).first(there);
    const std::optional<PartialFpdu> partial = free.partial_fpdu(stream);
    REQUIRE(partial);
    CHECK(partial->ulpdu.data() == fpdu.data() + 2);
    CHECK(partial->ulpdu.size() == there - 2);
    CHECK(partial->missing == 12 - there);
    CHECK(partial->trailer == 4);
    CHECK_FALSE(Deframer(true, false).partial_fpdu(stream));
    CHECK_FALSE(Deframer(false, true).partial_fpdu(stream));
  }
  CHECK_FALSE(free.partial_fpdu(ConstBytes(fpdu).first(12)));
  CHECK(free.partial_fpdu(hex("0003 00"))->trailer == 3 + 4);
}

TEST_CASE("MULPDU is what fits a segment of EMSS bytes, framing and padding included") {
  CHECK(mulpdu(1460) == 1454);  // 2 + 1454 + 4
  CHECK(mulpdu(1448) == 1442);
  CHECK(mulpdu(1461) == 1454);
  CHECK(mulpdu(1463) == 1454);
  CHECK(mulpdu(1464) == 1458);
  for (size_t emss = 136; emss < 64776; ++emss) {
    const size_t largest = mulpdu(emss);
    if (fpdu_bytes(largest) > emss || fpdu_bytes(largest + 1) <= emss) FAIL(emss);
  }
}

TEST_CASE("MULPDU stays between 128 and 64,768 bytes") {
  CHECK(mulpdu(0) == 128);
  CHECK(mulpdu(1) == 128);
  CHECK(mulpdu(134) == 128);
  CHECK(mulpdu(135) == 128);
  CHECK(mulpdu(64770) == 64762);
  CHECK(mulpdu(64774) == 64766);
  CHECK(mulpdu(64776) == 64768);
  CHECK(mulpdu(65536) == 64768);
  CHECK(mulpdu(SIZE_MAX) == 64768);
  CHECK(fpdu_bytes(65530) == 65536);
}

TEST_CASE("every part of an FPDU is incomplete and says how much more it takes") {
  for (const auto& fpdu : golden_fpdus()) {
    for (size_t length = 0; length < fpdu.size(); ++length) {
      const Deframed deframed = deframe(ConstBytes(fpdu).first(length), true);
      REQUIRE(deframed.status == DeframeStatus::incomplete);
      CHECK(deframed.needed > length);
      CHECK(deframed.needed == (length < 2 ? 8 : fpdu.size()));
      CHECK(deframed.consumed == 0);
    }
  }
}

TEST_CASE("an FPDU is found in front of what follows it") {
  auto stream = golden::fpdu_pad_1();
  const size_t size = stream.size();
  const auto next = golden::fpdu_send();
  stream.insert(stream.end(), next.begin(), next.end());
  const Deframed first = deframe(stream, true);
  REQUIRE(first.status == DeframeStatus::fpdu);
  CHECK(first.consumed == size);
  CHECK(first.ulpdu.size() == 21);
  CHECK(first.ulpdu.data() == stream.data() + 2);
  const Deframed second = deframe(ConstBytes(stream).subspan(first.consumed), true);
  REQUIRE(second.status == DeframeStatus::fpdu);
  CHECK(second.ulpdu.size() == 22);
  CHECK(second.consumed == next.size());
}

TEST_CASE("any flipped bit of an FPDU is found behind its length field") {
  for (auto fpdu : golden_fpdus()) {
    for (size_t bit = 16; bit < fpdu.size() * 8; ++bit) {
      fpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
      CHECK(deframe(fpdu, true).status == DeframeStatus::bad_crc);
      fpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
    }
  }
}

TEST_CASE("a flipped bit of the length field gives no FPDU either") {
  for (auto fpdu : golden_fpdus()) {
    for (size_t bit = 0; bit < 16; ++bit) {
      fpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
      CHECK(deframe(fpdu, true).status != DeframeStatus::fpdu);
      fpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
    }
  }
}

TEST_CASE("with CRCs off the CRC field may hold anything") {
  auto fpdu = golden::fpdu_send();
  fpdu.back() ^= std::byte{1};
  CHECK(deframe(fpdu, true).status == DeframeStatus::bad_crc);
  const Deframed deframed = deframe(fpdu, false);
  CHECK(deframed.status == DeframeStatus::fpdu);
  CHECK(deframed.consumed == fpdu.size());
}

TEST_CASE("the CRC field of an FPDU that came unsealed may hold anything, and of no other") {
  auto fpdu = golden::fpdu_send();
  fpdu.back() ^= std::byte{1};
  Deframer deframer(true, false);
  CHECK(deframer.next(fpdu).status == DeframeStatus::bad_crc);
  deframer.came(false, true);  // it began before that
  CHECK(deframer.next(fpdu).status == DeframeStatus::bad_crc);
  CHECK_FALSE(deframer.allows_partial());
  deframer.came(false, false);
  CHECK(deframer.next(fpdu).status == DeframeStatus::fpdu);
  CHECK(deframer.allows_partial());
  deframer.came(true, true);
  CHECK(deframer.next(fpdu).status == DeframeStatus::fpdu);
  deframer.step(fpdu.size());  // the one behind it came later
  CHECK(deframer.next(fpdu).status == DeframeStatus::bad_crc);
}

TEST_CASE("an FPDU without a ULPDU is one of eight bytes") {
  const auto fpdu = fpdu_of({});
  REQUIRE(fpdu.size() == 8);
  CHECK(copy(ConstBytes(fpdu).first(4)) == hex("00000000"));
  const Deframed deframed = deframe(fpdu, true);
  CHECK(deframed.status == DeframeStatus::fpdu);
  CHECK(deframed.ulpdu.empty());
  CHECK(deframed.consumed == 8);
}

TEST_CASE("ULPDUs of any length come out as they went in") {
  Random random(1);
  for (size_t length : {1u, 2u, 3u, 4u, 5u, 127u, 128u, 1454u, 65530u, 65531u, 65534u, 65535u}) {
    const auto ulpdu = test::random_bytes(random, length);
    const auto fpdu = fpdu_of(ulpdu);
    const Deframed deframed = deframe(fpdu, true);
    REQUIRE(deframed.status == DeframeStatus::fpdu);
    CHECK(copy(deframed.ulpdu) == ulpdu);
  }
}

TEST_CASE("the CRC does not depend on the pieces it was computed from") {
  const auto ulpdu = text("a ULPDU in three pieces");
  const auto fpdu = fpdu_of(ulpdu);
  Crc32c crc;
  crc.update(ConstBytes(fpdu).first(1));
  crc.update(ConstBytes(fpdu).subspan(1, 6));
  crc.update(ConstBytes(fpdu).subspan(7, 2 + ulpdu.size() - 7));
  std::vector<std::byte> trailer(kMaxTrailer);
  trailer.resize(encode_trailer(ulpdu.size(), &crc, trailer));
  CHECK(std::equal(trailer.begin(), trailer.end(), fpdu.end() - static_cast<long>(trailer.size()),
                   fpdu.end()));
}

TEST_CASE("random bytes are never an FPDU with a right CRC") {
  Random random(5044);
  for (int round = 0; round < 100000; ++round) {
    const auto stream = test::random_bytes(random, random.below(200));
    if (deframe(stream, true).status == DeframeStatus::fpdu) FAIL(round);
  }
}
