// SPDX-License-Identifier: Apache-2.0
#include "ddp/header.h"

#include "support/bytes.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;
using namespace diwarp::test;

namespace {

const Header kTagged{.tagged = true,
                     .last = true,
                     .ulp_control = 0x40,
                     .stag = 0x11223344,
                     .tagged_offset = 0x5566778899AABBCC};

const Header kUntagged{.last = true,
                       .ulp_control = 0x43,
                       .ulp_word = 0x11223344,
                       .queue_number = 0x55667788,
                       .msn = 0x99AABBCC,
                       .message_offset = 0xDDEEFF00};

// RFC 5041 figures 3 and 5: control, RsvdULP, then STag and TO, or the rest of RsvdULP, QN, MSN,
// MO.
const auto kTaggedBytes = hex("c1 40 11223344 5566778899aabbcc");
const auto kUntaggedBytes = hex("41 43 11223344 55667788 99aabbcc ddeeff00");

std::vector<std::byte> encoded(const Header& header) {
  std::vector<std::byte> out(kUntaggedHeaderBytes);
  out.resize(encode(header, out));
  return out;
}

}  // namespace

TEST_CASE("a tagged header is laid out as RFC 5041 figure 3") {
  CHECK(encoded(kTagged) == kTaggedBytes);
}

TEST_CASE("an untagged header is laid out as RFC 5041 figure 5") {
  CHECK(encoded(kUntagged) == kUntaggedBytes);
}

TEST_CASE("decoding a tagged header gives its fields") {
  const auto header = decode(kTaggedBytes);
  REQUIRE(header);
  CHECK(header->tagged);
  CHECK(header->last);
  CHECK(header->version == 1);
  CHECK(header->reserved == 0);
  CHECK(header->ulp_control == 0x40);
  CHECK(header->stag == 0x11223344);
  CHECK(header->tagged_offset == 0x5566778899AABBCC);
}

TEST_CASE("decoding an untagged header gives its fields") {
  const auto header = decode(kUntaggedBytes);
  REQUIRE(header);
  CHECK_FALSE(header->tagged);
  CHECK(header->last);
  CHECK(header->version == 1);
  CHECK(header->ulp_control == 0x43);
  CHECK(header->ulp_word == 0x11223344);
  CHECK(header->queue_number == 0x55667788);
  CHECK(header->msn == 0x99AABBCC);
  CHECK(header->message_offset == 0xDDEEFF00);
}

TEST_CASE("every control octet is decoded into its bits and encoded again") {
  for (int control = 0; control < 256; ++control) {
    auto bytes = kUntaggedBytes;
    bytes[0] = static_cast<std::byte>(control);
    const auto header = decode(bytes);
    REQUIRE(header);
    CHECK(header->tagged == ((control & 0x80) != 0));
    CHECK(header->last == ((control & 0x40) != 0));
    CHECK(header->reserved == ((control & 0x3C) >> 2));
    CHECK(header->version == (control & 0x03));
    CHECK(encoded(*header)[0] == bytes[0]);
  }
}

TEST_CASE("a header that is cut short is none") {
  for (size_t length = 0; length < kTaggedHeaderBytes; ++length) {
    CHECK_FALSE(decode(ConstBytes(kTaggedBytes).first(length)));
  }
  CHECK(decode(kTaggedBytes));
  for (size_t length = 0; length < kUntaggedHeaderBytes; ++length) {
    CHECK_FALSE(decode(ConstBytes(kUntaggedBytes).first(length)));
  }
  CHECK(decode(kUntaggedBytes));
}

TEST_CASE("version and model are told by the first octet alone") {
  CHECK_FALSE(peek_version({}));
  CHECK_FALSE(peek_tagged({}));
  for (unsigned octet = 0; octet < 256; ++octet) {
    const std::byte first[] = {static_cast<std::byte>(octet)};
    CHECK(peek_version(first) == octet % 4);
    CHECK(peek_tagged(first) == (octet >= 128));
  }
}
