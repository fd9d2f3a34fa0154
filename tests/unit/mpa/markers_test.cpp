// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/random.h"
#include "mpa/fpdu.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

using namespace diwarp;
using namespace diwarp::mpa;
using namespace diwarp::test;

namespace {

using Octets = std::vector<std::byte>;

bool same(ConstBytes a, ConstBytes b) { return std::ranges::equal(a, b); }

Octets marked(ConstBytes ulpdu, uint64_t position, bool crc = true) {
  Octets out(marked_fpdu_bytes(ulpdu.size()));
  out.resize(encode_marked_fpdu({&ulpdu, 1}, position, crc, out));
  return out;
}

/// Lays an FPDU out byte by byte, as another reading of RFC 5044 section 4.3.
Octets by_hand(ConstBytes ulpdu, uint64_t position) {
  Octets plain(fpdu_bytes(ulpdu.size()) - kCrcBytes);
  encode_length(ulpdu.size(), plain);
  std::copy(ulpdu.begin(), ulpdu.end(), plain.begin() + 2);
  Octets out;
  size_t header = 0;
  const auto push = [&](std::byte byte) {
    if ((position + out.size()) % 512 == 0) {
      const size_t pointer = out.empty() ? 0 : out.size() - header;
      if (out.empty()) header = 4;
      for (size_t value : {size_t{0}, size_t{0}, pointer >> 8 & 0xff, pointer & 0xff})
        out.push_back(static_cast<std::byte>(value));
    }
    out.push_back(byte);
  };
  for (std::byte byte : plain) push(byte);
  // The CRC covers a marker right in front of it.
  const bool due = (position + out.size()) % 512 == 0;
  if (due) {
    push(std::byte{0});
    out.pop_back();
  }
  const uint32_t crc = crc32c(out);
  for (int shift : {0, 8, 16, 24}) out.push_back(static_cast<std::byte>(crc >> shift & 0xff));
  return out;
}

Deframer at(uint64_t position, bool crc = true) {
  Deframer deframer(crc, true);
  deframer.step(position);
  return deframer;
}

void fix_crc(Octets& fpdu) {
  const size_t covered = fpdu.size() - kCrcBytes;
  store_crc32c(fpdu.data() + covered, crc32c(ConstBytes(fpdu).first(covered)));
}

}  // namespace

TEST_CASE("with markers MULPDU leaves room for one every 512 bytes of EMSS") {
  // RFC 5044 section 4.5: EMSS - (6 + 4 * ceil(EMSS / 512) + EMSS mod 4)
  CHECK(mulpdu_with_markers(1460) == 1442);
  CHECK(mulpdu_with_markers(1448) == 1430);
  CHECK(mulpdu_with_markers(8948) == 8870);
  CHECK(mulpdu_with_markers(0) == 128);
  CHECK(mulpdu_with_markers(138) == 128);
  CHECK(mulpdu_with_markers(140) == 130);
  CHECK(mulpdu_with_markers(SIZE_MAX) == 64768);
}

TEST_CASE("a full FPDU with markers fits EMSS wherever it begins") {
  for (size_t emss : {140u, 511u, 512u, 513u, 1024u, 1448u, 1460u, 4096u, 8948u, 65536u}) {
    const Octets ulpdu(mulpdu_with_markers(emss));
    for (uint64_t position = 0; position < 512; position += 4)
      CHECK(marked(ulpdu, position).size() <= emss);
  }
}

TEST_CASE("an FPDU with markers is never longer than is said") {
  for (size_t length : {0u, 2u, 500u, 502u, 503u, 504u, 506u, 507u, 1010u, 1020u, 3000u}) {
    const Octets ulpdu(length);
    size_t longest = 0;
    for (uint64_t position = 0; position < 512; position += 4)
      longest = std::max(longest, marked(ulpdu, position).size());
    CHECK(longest == marked_fpdu_bytes(length));
  }
}

TEST_CASE("an FPDU has a marker at every 512th byte of the stream, wherever it begins") {
  Random random(4);
  for (size_t length :
       {0u, 1u, 2u, 3u, 18u, 490u, 498u, 499u, 500u, 501u, 502u, 506u, 508u, 1442u, 2047u}) {
    const Octets ulpdu = test::random_bytes(random, length);
    for (uint64_t position = 0; position < 1024; position += 4)
      if (marked(ulpdu, position) != by_hand(ulpdu, position)) FAIL(length << " at " << position);
  }
}

TEST_CASE("an FPDU with markers is the same in pieces") {
  Random random(5);
  const Octets ulpdu = test::random_bytes(random, 1500);
  const ConstBytes whole(ulpdu);
  for (size_t cut = 0; cut <= 1500; cut += 3) {
    const std::array pieces{whole.first(cut), ConstBytes{}, whole.subspan(cut)};
    Octets out(marked_fpdu_bytes(1500));
    out.resize(encode_marked_fpdu(pieces, 508, true, out));
    if (out != marked(ulpdu, 508)) FAIL(cut);
  }
}

TEST_CASE("markers are taken out of an FPDU wherever it begins") {
  Random random(6);
  for (size_t length : {0u, 1u, 2u, 3u, 18u, 498u, 499u, 500u, 501u, 502u, 506u, 508u, 1442u}) {
    const Octets ulpdu = test::random_bytes(random, length);
    for (uint64_t position = 0; position < 1024; position += 4) {
      const Octets fpdu = by_hand(ulpdu, position);
      Deframer deframer = at(position);
      const Deframed deframed = deframer.next(fpdu);
      REQUIRE(deframed.status == DeframeStatus::fpdu);
      CHECK(deframed.consumed == fpdu.size());
      if (!same(deframed.ulpdu, ulpdu)) FAIL(length << " at " << position);
    }
  }
}

TEST_CASE("the longest FPDU there can be goes through with markers") {
  Random random(7);
  for (uint64_t position : {uint64_t{0}, uint64_t{4}, uint64_t{508}, uint64_t{1} << 40}) {
    const Octets ulpdu = test::random_bytes(random, 65535);
    const Octets fpdu = marked(ulpdu, position);
    Deframer deframer = at(position);
    const Deframed deframed = deframer.next(fpdu);
    REQUIRE(deframed.status == DeframeStatus::fpdu);
    CHECK(same(deframed.ulpdu, ulpdu));
  }
}

TEST_CASE("every part of an FPDU with markers is incomplete, and never asks for more than it has") {
  Random random(8);
  for (size_t length : {0u, 18u, 600u, 1100u}) {
    const Octets ulpdu = test::random_bytes(random, length);
    for (uint64_t position : {0u, 4u, 500u, 504u, 508u}) {
      const Octets fpdu = marked(ulpdu, position);
      Deframer deframer = at(position);
      for (size_t size = 0; size < fpdu.size(); ++size) {
        const Deframed deframed = deframer.next(ConstBytes(fpdu).first(size));
        REQUIRE(deframed.status == DeframeStatus::incomplete);
        CHECK(deframed.needed > size);
        CHECK(deframed.needed <= fpdu.size());
        CHECK(deframed.consumed == 0);
      }
    }
  }
}

TEST_CASE("before the length field is there, the shortest FPDU is asked for") {
  const Octets fpdu = marked(Octets(600), 0);
  for (size_t size = 0; size < 6; ++size)
    CHECK(at(0).next(ConstBytes(fpdu).first(size)).needed == 4 + 8);
  CHECK(at(0).next(ConstBytes(fpdu).first(6)).needed == fpdu.size());
  const Octets other = marked(Octets(600), 508);
  CHECK(at(508).next(ConstBytes(other).first(1)).needed == 4 + 8);
  CHECK(at(508).next(ConstBytes(other).first(2)).needed == other.size());
}

TEST_CASE("a stream of FPDUs with markers comes out the same however it is cut") {
  Random random(9);
  for (int round = 0; round < 200; ++round) {
    const bool crc = random.chance(0.5);
    Octets stream;
    std::vector<Octets> ulpdus;
    for (int i = 0; i < 20; ++i) {
      ulpdus.push_back(test::random_bytes(random, random.below(random.chance(0.5) ? 40 : 1600)));
      const Octets fpdu = marked(ulpdus.back(), stream.size(), crc);
      stream.insert(stream.end(), fpdu.begin(), fpdu.end());
    }
    Deframer deframer(crc, true);
    size_t front = 0;
    size_t seen = 0;
    size_t count = 0;
    while (count < ulpdus.size()) {
      const Deframed deframed = deframer.next(ConstBytes(stream).subspan(front, seen - front));
      if (deframed.status == DeframeStatus::incomplete) {
        REQUIRE(seen < stream.size());
        seen += 1 + random.below(std::min<size_t>(stream.size() - seen, 700));
        continue;
      }
      REQUIRE(deframed.status == DeframeStatus::fpdu);
      REQUIRE(same(deframed.ulpdu, ulpdus[count++]));
      front += deframed.consumed;
      deframer.step(deframed.consumed);
    }
    CHECK(front == stream.size());
  }
}

TEST_CASE("a marker that does not point to its FPDU is found though the CRC is right") {
  const Octets ulpdu(1200);
  for (uint64_t position : {0u, 256u, 508u}) {
    const size_t first = (512 - position % 512) % 512;
    for (size_t marker = first; marker < 1200; marker += 512) {
      for (size_t half : {2u, 3u}) {
        Octets fpdu = marked(ulpdu, position);
        fpdu[marker + half] ^= std::byte{4};
        CHECK(at(position).next(fpdu).status == DeframeStatus::bad_crc);
        CHECK(at(position, false).next(fpdu).status == DeframeStatus::bad_marker);
        fix_crc(fpdu);
        CHECK(at(position).next(fpdu).status == DeframeStatus::bad_marker);
      }
    }
  }
}

TEST_CASE("the reserved half of a marker may hold anything, which the CRC covers") {
  Octets fpdu = marked(Octets(100), 0);
  fpdu[1] ^= std::byte{0xff};
  CHECK(at(0).next(fpdu).status == DeframeStatus::bad_crc);
  fix_crc(fpdu);
  CHECK(at(0).next(fpdu).status == DeframeStatus::fpdu);
}

TEST_CASE("the two low bits of a marker's pointer may hold anything, which the CRC covers") {
  const Octets ulpdu(1200);
  for (uint64_t position : {0u, 256u, 508u}) {
    const size_t first = (512 - position % 512) % 512;
    for (size_t marker = first; marker < 1200; marker += 512) {
      for (const unsigned low : {1u, 2u, 3u}) {
        Octets fpdu = marked(ulpdu, position);
        fpdu[marker + 3] |= static_cast<std::byte>(low);
        CHECK(at(position).next(fpdu).status == DeframeStatus::bad_crc);
        CHECK(at(position, false).next(fpdu).status == DeframeStatus::fpdu);
        fix_crc(fpdu);
        CHECK(at(position).next(fpdu).status == DeframeStatus::fpdu);
      }
    }
  }
}

TEST_CASE("any flipped bit of an FPDU with markers is found behind its length field") {
  Octets fpdu = marked(Octets(600, std::byte{0x77}), 0);
  for (size_t bit = 0; bit < fpdu.size() * 8; ++bit) {
    if (bit >= 32 && bit < 48) continue;  // the length field
    fpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
    if (at(0).next(fpdu).status != DeframeStatus::bad_crc) FAIL(bit);
    fpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
  }
}

TEST_CASE("with CRCs off and markers on the CRC field is zero") {
  const Octets fpdu = marked(Octets(10), 0, false);
  CHECK(copy(ConstBytes(fpdu).last(4)) == hex("00000000"));
  CHECK(at(0, false).next(fpdu).status == DeframeStatus::fpdu);
  CHECK(at(0, true).next(fpdu).status == DeframeStatus::bad_crc);
}

TEST_CASE("random bytes are never an FPDU with markers and a right CRC") {
  Random random(5044);
  for (int round = 0; round < 50000; ++round) {
    const Octets stream = test::random_bytes(random, random.below(1200));
    Deframer deframer = at(random.below(256) * 4);
    if (deframer.next(stream).status == DeframeStatus::fpdu) FAIL(round);
  }
}

TEST_CASE("random bytes with CRCs off give FPDUs within their bytes or a bad marker") {
  Random random(6581);
  for (int round = 0; round < 50000; ++round) {
    Octets stream = test::random_bytes(random, 8 + random.below(1200));
    const uint64_t position = random.below(256) * 4;
    stream[position % 512 == 0 ? 4 : 0] &= std::byte{3};
    Deframer deframer = at(position, false);
    const Deframed deframed = deframer.next(stream);
    if (deframed.status == DeframeStatus::incomplete) CHECK(deframed.needed > stream.size());
    if (deframed.status == DeframeStatus::fpdu) REQUIRE(deframed.consumed <= stream.size());
  }
}
