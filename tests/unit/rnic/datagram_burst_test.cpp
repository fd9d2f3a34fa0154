// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/datagram_burst.h"

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
  CHECK(without_payload == (DatagramBurst::kMaxPieces - 15 * 66) / 2);
  CHECK(burst->datagrams()[0].to == address);
  CHECK(burst->datagrams()[0].pieces.size() == 66);
}
