// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <string_view>
#include <vector>

#include "support/catch.h"
#include "support/contents.h"

using namespace diwarp;

namespace {

constexpr uint64_t kSeed = 3720;

struct Vector {
  std::vector<uint8_t> data;
  uint32_t crc;
};

std::vector<uint8_t> counting(int first, int step) {
  std::vector<uint8_t> result;
  for (int i = 0; i < 32; ++i) result.push_back(static_cast<uint8_t>(first + i * step));
  return result;
}

// RFC 3720 appendix B.4; the RFC shows the bytes as sent, least significant first.
std::vector<Vector> rfc_vectors() {
  return {
      {std::vector<uint8_t>(32, 0x00), 0x8A9136AA},
      {std::vector<uint8_t>(32, 0xFF), 0x62A8AB43},
      {counting(0, 1), 0x46DD794E},
      {counting(31, -1), 0x113FDB5C},
      // An iSCSI SCSI Read (10) Command PDU.
      {{0x01, 0xC0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 4, 0,
        0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 2,    0, 0, 0, 0, 0, 0, 0},
       0xD9963A56},
  };
}

ConstBytes view(const std::vector<uint8_t>& data) { return std::as_bytes(std::span(data)); }

ConstBytes view(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The definition, bit by bit: division by the polynomial 0x1EDC6F41, low bits first.
uint32_t shift_in(uint32_t state, std::byte byte) {
  state ^= static_cast<uint32_t>(byte);
  for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78u : 0);
  return state;
}

}  // namespace

TEST_CASE("every CRC32C backend gives the values of RFC 3720") {
  REQUIRE(crc32c_backends().size() >= 1);
  for (const Crc32cBackend& backend : crc32c_backends()) {
    CAPTURE(backend.name);
    CHECK(~backend.update(~0u, view("123456789")) == 0xE3069283);
    for (const Vector& vector : rfc_vectors()) {
      CHECK(~backend.update(~0u, view(vector.data)) == vector.crc);
    }
  }
}

TEST_CASE("the CRC32C in use gives the values of RFC 3720") {
  CHECK(crc32c(view("123456789")) == 0xE3069283);
  CHECK(crc32c({}) == 0);
  for (const Vector& vector : rfc_vectors()) CHECK(crc32c(view(vector.data)) == vector.crc);
}

TEST_CASE("every CRC32C backend follows the bitwise definition at every length and alignment") {
  constexpr size_t kLongest = 1100;
  constexpr uint32_t kStart = 0x12345678;
  const auto data = test::pattern(kLongest + 64, kSeed);
  for (size_t offset = 0; offset < 64; offset += offset < 16 ? 1 : 15) {
    uint32_t expected = kStart;
    for (size_t length = 0; length <= kLongest; ++length) {
      const ConstBytes part = ConstBytes(data).subspan(offset, length);
      if (length != 0) expected = shift_in(expected, part.back());
      size_t wrong = crc32c_update(kStart, part) == expected ? 0 : 1;
      for (const Crc32cBackend& backend : crc32c_backends())
        wrong += backend.update(kStart, part) == expected ? 0 : 1;
      if (wrong != 0) FAIL("length " << length << " at offset " << offset);
    }
  }
}

TEST_CASE("all CRC32C backends agree on long data") {
  const auto data = test::pattern(70001, kSeed);
  for (const size_t length : std::array<size_t, 6>{70001, 65536, 65470, 8193, 4096, 3071}) {
    const ConstBytes part = ConstBytes(data).first(length);
    const uint32_t expected = crc32c_table_update(~0u, part);
    for (const Crc32cBackend& backend : crc32c_backends()) {
      CAPTURE(backend.name, length);
      CHECK(backend.update(~0u, part) == expected);
    }
    CHECK(crc32c(part) == ~expected);
  }
}

TEST_CASE("a CRC32C does not depend on how the data is split") {
  const auto data = test::pattern(600, kSeed);
  const uint32_t expected = crc32c(data);
  size_t disagreements = 0;
  for (size_t split = 0; split <= data.size(); ++split) {
    Crc32c crc;
    crc.update(ConstBytes(data).first(split));
    crc.update({});
    crc.update(ConstBytes(data).subspan(split));
    if (crc.value() != expected) ++disagreements;
  }
  CHECK(disagreements == 0);
}

TEST_CASE("a single flipped bit changes the CRC32C") {
  auto data = test::pattern(64, kSeed);
  const uint32_t before = crc32c(data);
  for (std::byte& byte : data) {
    byte ^= std::byte{0x10};
    CHECK(crc32c(data) != before);
    byte ^= std::byte{0x10};
  }
}

TEST_CASE("the name of the CRC32C backend in use is that of the first") {
  CHECK(crc32c_backend() == std::string_view(crc32c_backends().front().name));
  CHECK(crc32c_backends().back().name == std::string_view("table"));
}

TEST_CASE("a CRC32C goes on the wire as RFC 3720 shows it") {
  const std::vector<std::byte> zeros(32);
  std::vector<std::byte> wire(4);
  store_crc32c(wire.data(), crc32c(zeros));
  CHECK(wire == std::vector{std::byte{0xAA}, std::byte{0x36}, std::byte{0x91}, std::byte{0x8A}});
  CHECK(load_crc32c(wire.data()) == 0x8A9136AA);
}
