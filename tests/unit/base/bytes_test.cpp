// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "base/byte_order.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

std::vector<std::byte> make(std::initializer_list<int> values) {
  std::vector<std::byte> result;
  for (int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

template <class T>
std::vector<std::byte> image(const T& value) {
  const ConstBytes view = std::as_bytes(std::span(&value, 1));
  return {view.begin(), view.end()};
}

}  // namespace

TEST_CASE("big-endian fields lie in memory most significant byte first") {
  CHECK(image(Be16(0x0102)) == make({1, 2}));
  CHECK(image(Be32(0x01020304)) == make({1, 2, 3, 4}));
  CHECK(image(Be64(0x0102030405060708)) == make({1, 2, 3, 4, 5, 6, 7, 8}));
  static_assert(Be32(0x01020304).get() == 0x01020304);
  static_assert(Be16().get() == 0);
}

TEST_CASE("a header of big-endian fields has no padding") {
  struct Header {
    Be16 a;
    Be64 b;
    Be32 c;
  };
  static_assert(sizeof(Header) == 14 && alignof(Header) == 1);
  Header header{.a = uint16_t{1}, .b = uint64_t{2}, .c = uint32_t{3}};
  header.c = 0xFFFEFDFCu;
  CHECK(image(header) == make({0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0xFF, 0xFE, 0xFD, 0xFC}));
}

TEST_CASE("unaligned loads and stores are in network order") {
  const auto source = make({0xAA, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08});
  CHECK(load_be<uint8_t>(&source[1]) == 0x01);
  CHECK(load_be<uint16_t>(&source[1]) == 0x0102);
  CHECK(load_be<uint32_t>(&source[1]) == 0x01020304);
  CHECK(load_be<uint64_t>(&source[1]) == 0x0102030405060708);
  std::vector<std::byte> target(9);
  store_be<uint64_t>(&target[1], 0x0102030405060708);
  target[0] = std::byte{0xAA};
  CHECK(target == source);
}

TEST_CASE("a reader gives the fields in order and stops at the end") {
  const auto source = make({7, 1, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x10, 0x11, 0x12});
  Reader reader(source);
  CHECK(reader.u8() == 7);
  CHECK(reader.be16() == 0x0102);
  CHECK(reader.be32() == 0x00000100);
  CHECK(reader.be64() == 9);
  reader.skip(1);
  CHECK(reader.remaining() == 2);
  CHECK(reader.rest().data() == &source[16]);
  const ConstBytes last = reader.bytes(2);
  CHECK(last.data() == &source[16]);
  CHECK(last.size() == 2);
  CHECK(reader.ok());
  CHECK(reader.bytes(0).empty());
  CHECK(reader.ok());
}

TEST_CASE("a read past the end gives zero and fails the reader for good") {
  const auto source = make({1, 2, 3});
  Reader reader(source);
  CHECK(reader.be32() == 0);
  CHECK_FALSE(reader.ok());
  CHECK(reader.u8() == 0);  // though there were three bytes
  CHECK(reader.remaining() == 0);
  CHECK(reader.bytes(1).empty());
  CHECK_FALSE(reader.ok());
}

TEST_CASE("every kind of read is bounded") {
  const auto source = make({1});
  const auto fails = [&](auto read) {
    Reader reader(source);
    read(reader);
    return !reader.ok();
  };
  CHECK(fails([](Reader& r) { r.be16(); }));
  CHECK(fails([](Reader& r) { r.be64(); }));
  CHECK(fails([](Reader& r) { r.bytes(2); }));
  CHECK(fails([](Reader& r) { r.skip(SIZE_MAX); }));
  CHECK_FALSE(fails([](Reader& r) { r.u8(); }));
}

TEST_CASE("a writer lays the fields out in network order") {
  std::array<std::byte, 20> target{};
  target.fill(std::byte{0xEE});
  Writer writer(target);
  writer.u8(7);
  writer.be16(0x0102);
  writer.be32(0x03040506);
  writer.be64(0x0708090A0B0C0D0E);
  writer.zeros(2);
  writer.skip(1);
  writer.bytes(make({0x55}));
  CHECK(writer.ok());
  CHECK(writer.written() == 19);
  CHECK(writer.remaining() == 1);
  CHECK(std::vector(target.begin(), target.end()) ==
        make({7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 0, 0xEE, 0x55, 0xEE}));
}

TEST_CASE("a write that does not fit writes nothing and fails the writer for good") {
  std::array<std::byte, 3> target{};
  Writer writer(target);
  writer.u8(1);
  writer.be32(0xFFFFFFFF);
  CHECK_FALSE(writer.ok());
  writer.u8(2);  // would fit
  CHECK(writer.written() == 1);
  CHECK(writer.remaining() == 0);
  CHECK(std::vector(target.begin(), target.end()) == make({1, 0, 0}));
  Writer other(target);
  other.skip(SIZE_MAX);
  CHECK_FALSE(other.ok());
}
