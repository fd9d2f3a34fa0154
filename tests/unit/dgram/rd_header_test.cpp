// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "base/random.h"
#include "dgram/rd_header.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;

namespace {

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

// Kind, flags, window 0x0102; epoch 3; peer epoch 4; peer incarnation 0x05060708; then the two
// numbers.
std::vector<std::byte> header(int kind, int sequence = 0, int acknowledged = 0, int flags = 0,
                              int peer_epoch = 4, int window = 2) {
  return bytes({kind, flags, 0, window, 0, 0, 0, 3,        0, 0, 0, peer_epoch,
                5,    6,     7, 8,      0, 0, 0, sequence, 0, 0, 0, acknowledged});
}

std::vector<std::byte> with(std::vector<std::byte> front, size_t more) {
  front.resize(front.size() + more);
  return front;
}

/// A skip for MSN 9 of messages of this kind.
std::vector<std::byte> skip(int kind, int reserved = 0) {
  auto out = header(2, 1);
  for (const std::byte one : bytes({kind, 0, reserved, 0, 0, 0, 0, 9})) out.push_back(one);
  return out;
}

RdHeaderFault fault(const std::vector<std::byte>& body) { return parse_rd_header(body).fault; }

}  // namespace

TEST_CASE("rd header: each field stands where the layout says") {
  const auto wire =
      bytes({1,    0,    0xA1, 0xA2, 0xB1, 0xB2, 0xB3, 0xB4, 0xC1, 0xC2, 0xC3, 0xC4, 0xD1,
             0xD2, 0xD3, 0xD4, 0xE1, 0xE2, 0xE3, 0xE4, 0xF1, 0xF2, 0xF3, 0xF4, 9});
  const ParsedRdHeader parsed = parse_rd_header(wire);
  REQUIRE(parsed.fault == RdHeaderFault::none);
  CHECK(parsed.header.kind == RdKind::data);
  CHECK(parsed.header.window == 0xA1A2);
  CHECK(parsed.header.epoch == 0xB1B2B3B4);
  CHECK(parsed.header.peer_epoch == 0xC1C2C3C4);
  CHECK(parsed.header.peer_incarnation == 0xD1D2D3D4);
  CHECK(parsed.header.sequence == 0xE1E2E3E4);
  CHECK(parsed.header.acknowledged == 0xF1F2F3F4);
  CHECK(parsed.rest.size() == 1);
  std::array<std::byte, kRdHeaderBytes> out;
  CHECK(encode_rd_header(parsed.header, out) == kRdHeaderBytes);
  CHECK(std::equal(out.begin(), out.end(), wire.begin()));
}

TEST_CASE("rd header: each kind has what it has and no more") {
  CHECK(fault(with(header(1, 1), 100)) == RdHeaderFault::none);
  CHECK(fault(with(header(1, 1), 0)) == RdHeaderFault::truncated);
  CHECK(fault(skip(1)) == RdHeaderFault::none);
  CHECK(fault(header(2, 1)) == RdHeaderFault::truncated);
  CHECK(fault(with(header(2, 1), 7)) == RdHeaderFault::truncated);
  CHECK(fault(with(skip(1), 1)) == RdHeaderFault::excess);
  CHECK(fault(with(header(3, 1), 8)) == RdHeaderFault::none);
  CHECK(fault(with(header(3, 1), 7)) == RdHeaderFault::truncated);
  CHECK(fault(with(header(3, 1), 9)) == RdHeaderFault::excess);
  CHECK(fault(header(4)) == RdHeaderFault::none);
  CHECK(fault(with(header(4), 512)) == RdHeaderFault::none);
  CHECK(fault(with(header(4), 520)) == RdHeaderFault::excess);
  CHECK(fault(with(header(4), 12)) == RdHeaderFault::excess);
  CHECK(fault(header(5)) == RdHeaderFault::none);
  CHECK(fault(with(header(5), 1)) == RdHeaderFault::excess);
  CHECK(fault(with(header(6, 1), 4)) == RdHeaderFault::none);
  CHECK(fault(with(header(6, 1), 3)) == RdHeaderFault::truncated);
  CHECK(fault(with(header(7, 0, 0, 0, 0), 24)) == RdHeaderFault::none);
  CHECK(fault(with(header(7, 0, 0, 0, 0), 23)) == RdHeaderFault::truncated);
  CHECK(fault(header(8, 0, 0, 0, 4, 0)) == RdHeaderFault::none);
  CHECK(fault(with(header(8, 0, 0, 0, 4, 0), 1)) == RdHeaderFault::excess);
  CHECK(fault(header(0)) == RdHeaderFault::kind);
  CHECK(fault(header(9)) == RdHeaderFault::kind);
  CHECK(fault(header(255)) == RdHeaderFault::kind);
  for (size_t length = 0; length < kRdHeaderBytes; ++length) {
    auto cut = header(5);
    cut.resize(length);
    CHECK(fault(cut) == RdHeaderFault::truncated);
  }
}

TEST_CASE("rd header: fields that a kind has not must be zero") {
  CHECK(fault(header(4, 1)) == RdHeaderFault::fields);
  CHECK(fault(header(5, 1)) == RdHeaderFault::none);
  CHECK(fault(header(5, 0, 1)) == RdHeaderFault::none);
  CHECK(fault(with(header(7, 1, 0, 0, 0), 24)) == RdHeaderFault::fields);
  CHECK(fault(with(header(7, 0, 1, 0, 0), 24)) == RdHeaderFault::fields);
  CHECK(fault(with(header(7, 0, 0, 0, 4), 24)) == RdHeaderFault::fields);
  CHECK(fault(header(8, 0, 0, 0, 4, 1)) == RdHeaderFault::fields);
  CHECK(fault(header(8, 0, 1, 0, 4, 0)) == RdHeaderFault::fields);
  CHECK(fault(header(5, 0, 0, 0, 0)) == RdHeaderFault::fields);  // no peer epoch
  auto no_epoch = header(5);
  no_epoch[7] = std::byte{0};
  CHECK(fault(no_epoch) == RdHeaderFault::fields);
}

TEST_CASE("rd header: acknowledgements alone tell that a message waits") {
  CHECK(fault(header(4, 0, 0, 4)) == RdHeaderFault::none);
  CHECK(parse_rd_header(header(4, 0, 0, 4)).header.waits());
  CHECK_FALSE(parse_rd_header(header(4)).header.waits());
  for (int kind : {1, 2, 3, 5, 6}) {
    const size_t follows = kind == 1 ? 30U : kind == 2 || kind == 3 ? 8U : kind == 6 ? 4U : 0U;
    CHECK(fault(with(header(kind, 1, 0, 4), follows)) == RdHeaderFault::flags);
  }
}

TEST_CASE("rd header: only open and reset may be broken, all but reset may remember") {
  CHECK(fault(with(header(7, 0, 0, 1, 0), 24)) == RdHeaderFault::none);
  CHECK(fault(header(8, 0, 0, 1, 4, 0)) == RdHeaderFault::none);
  for (int kind = 1; kind <= 6; ++kind) {
    const size_t follows = kind == 1 ? 30U : kind == 2 || kind == 3 ? 8U : kind == 6 ? 4U : 0U;
    CHECK(fault(with(header(kind, kind == 4 || kind == 5 ? 0 : 1, 0, 1), follows)) ==
          RdHeaderFault::flags);
    CHECK(fault(with(header(kind, kind == 4 || kind == 5 ? 0 : 1, 0, 2), follows)) !=
          RdHeaderFault::flags);
  }
  CHECK(fault(with(header(7, 0, 0, 3, 0), 24)) == RdHeaderFault::none);
  CHECK(fault(with(header(7, 0, 0, 4, 0), 24)) == RdHeaderFault::flags);
  CHECK(fault(header(8, 0, 0, 2, 4, 0)) == RdHeaderFault::flags);
}

TEST_CASE("rd header: the map's highest bit is the datagram after the acknowledged one") {
  RdMap map;
  CHECK(map.size() == 0);
  map.set(0);
  map.set(2);
  map.set(64);
  map.set(4096);  // beyond what can be told
  CHECK(map.count == 2);
  CHECK(map.size() == 65);
  std::array<std::byte, 128> out{};
  REQUIRE(encode_rd_map(map, out) == 16);
  CHECK(out[0] == std::byte{0xA0});
  CHECK(out[8] == std::byte{0x80});
  const RdMap back = decode_rd_map(ConstBytes(out).first(16));
  CHECK(back.test(0));
  CHECK_FALSE(back.test(1));
  CHECK(back.test(2));
  CHECK(back.test(64));
  CHECK_FALSE(back.test(65));
  CHECK_FALSE(back.test(100000));
}

TEST_CASE("rd header: a skip names a message of a known kind") {
  for (int kind = 0; kind < 256; ++kind)
    CHECK(fault(skip(kind)) ==
          (kind >= 1 && kind <= 4 ? RdHeaderFault::none : RdHeaderFault::fields));
  CHECK(fault(skip(1, 1)) == RdHeaderFault::fields);
  std::array<std::byte, kRdSkipBytes> out;
  CHECK(encode_rd_skip({MessageKind::read_response, 0xA1A2A3A4}, out) == kRdSkipBytes);
  CHECK(std::vector(out.begin(), out.end()) == bytes({4, 0, 0, 0, 0xA1, 0xA2, 0xA3, 0xA4}));
  CHECK(decode_rd_skip(out) == MessageName{MessageKind::read_response, 0xA1A2A3A4});
}

TEST_CASE("rd header: codes, failures and proofs stand in network order") {
  std::array<std::byte, kRdCodeBytes> code;
  encode_rd_code(0x12050000, code);
  CHECK(std::vector(code.begin(), code.end()) == bytes({0x12, 5, 0, 0}));
  CHECK(decode_rd_code(code) == 0x12050000);
  std::array<std::byte, kRdFailureBytes> failure;
  encode_rd_failure({0xB1B2B3B4, 0x01000000}, failure);
  CHECK(std::vector(failure.begin(), failure.end()) == bytes({0xB1, 0xB2, 0xB3, 0xB4, 1, 0, 0, 0}));
  CHECK(decode_rd_failure(failure).sink_stag == 0xB1B2B3B4);
  CHECK(decode_rd_failure(failure).code == 0x01000000);
  std::array<std::byte, kRdProofBytes> proof;
  encode_rd_proof({.nonce = 0x0102030405060708, .cookie = {std::byte{9}}}, proof);
  CHECK(std::vector(proof.begin(), proof.begin() + 9) == bytes({1, 2, 3, 4, 5, 6, 7, 8, 9}));
  CHECK(decode_rd_proof(proof).nonce == 0x0102030405060708);
}

TEST_CASE("rd header: first sequence numbers depend on all four names, and on the direction") {
  const EndNames here{0xA1A2A3A4, 7};
  const EndNames there{0xB1B2B3B4, 9};
  const uint32_t first = first_sequence(here, there);
  // From an implementation in Python, after the paper.
  CHECK(first == 0x92F44C5);
  CHECK(first_sequence(there, here) == 0x75963404);
  CHECK(first != first_sequence({here.incarnation, 8}, there));
  CHECK(first != first_sequence({here.incarnation + 1, 7}, there));
  CHECK(first != first_sequence(here, {there.incarnation, 10}));
  CHECK(first != first_sequence(here, {there.incarnation + 1, 9}));
}

TEST_CASE("rd header: numbers are extended to the nearest") {
  CHECK(rd_extend(5, 3) == 5);
  CHECK(rd_extend(0xFFFFFFFF, uint64_t{1} << 32) == 0xFFFFFFFF);
  CHECK(rd_extend(1, 0xFFFFFFF0) == (uint64_t{1} << 32) + 1);
}

TEST_CASE("rd header: random bytes never make the parser overrun") {
  Random random(17);
  size_t valid = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<std::byte> body(random.below(180));
    for (std::byte& byte : body)
      byte = static_cast<std::byte>(random.below(4) == 0 ? random.next() : 0);
    if (!body.empty()) body[0] = static_cast<std::byte>(random.below(10));
    const std::vector<std::byte> exact(body);  // its own memory, for sanitizers
    const ParsedRdHeader parsed = parse_rd_header(exact);
    if (parsed.fault != RdHeaderFault::none) continue;
    ++valid;
    if (parsed.header.kind == RdKind::acknowledgement)
      CHECK(decode_rd_map(parsed.rest).count <= kRdMapWords);
  }
  CHECK(valid > 1000);
}
