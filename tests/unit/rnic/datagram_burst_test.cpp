// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/datagram_burst.h"

#include <array>
#include <memory>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;

TEST_CASE("a burst that has no pieces left takes no datagram, not even one without payload") {
  const auto burst = std::make_unique<DatagramBurst>();
  const Address address = Address::parse("10.0.0.1", 7000);
  const std::byte byte{1};
  burst->clear();
  for (int i = 0; i < 15; ++i) {  // 66 pieces each, with the header and the trailer
    const std::span<ConstBytes> pieces = burst->payload_pieces();
    REQUIRE(pieces.size() >= 64);
    for (size_t k = 0; k < 64; ++k) pieces[k] = {&byte, 1};
    burst->add({address}, 20, 64, 88, {});
  }
  size_t without_payload = 0;
  for (; !burst->full(); ++without_payload) {
    REQUIRE(without_payload < DatagramBurst::kMaxDatagrams);
    burst->add({Address::parse("10.0.0.2", 7000)}, 20, 0, 24, {});
  }
  CHECK(without_payload == DatagramBurst::kMaxPieces - 15 * 66 - 1);  // one piece each
  CHECK(burst->datagrams()[0].to == address);
  CHECK(burst->datagrams()[0].pieces.size() == 66);
}

TEST_CASE("a short piece of payload follows its header, and the datagram is one piece") {
  const auto burst = std::make_unique<DatagramBurst>();
  const std::array<std::byte, DatagramBurst::kCopiedBytes + 1> bytes{std::byte{7}, std::byte{8}};
  const std::array<ConstBytes, 2> pieces{ConstBytes(bytes).first(2), ConstBytes(bytes)};
  burst->clear();
  CHECK(burst->join_payload(20, {}) == 20);
  CHECK(burst->join_payload(20, pieces) == 20);
  CHECK(burst->join_payload(20, std::span(pieces).last(1)) == 20);
  const ConstBytes longest = ConstBytes(bytes).first(DatagramBurst::kCopiedBytes);
  CHECK(burst->join_payload(20, {&longest, 1}) == 20 + DatagramBurst::kCopiedBytes);
  REQUIRE(burst->join_payload(20, std::span(pieces).first(1)) == 22);
  burst->add({Address::parse("10.0.0.2", 7000)}, 22, 0, 22 + DatagramBurst::kTrailerBytes, {});
  REQUIRE(burst->datagrams()[0].pieces.size() == 1);
  const ConstBytes whole = burst->datagrams()[0].pieces[0];
  REQUIRE(whole.size() == 22 + DatagramBurst::kTrailerBytes);
  CHECK(whole[20] == std::byte{7});
  CHECK(whole[21] == std::byte{8});
}
