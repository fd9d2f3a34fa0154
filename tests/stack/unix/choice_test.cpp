// SPDX-License-Identifier: Apache-2.0
#include "stack/support.h"

namespace diwarp::test {

TEST_CASE("in this program devices use the backend of the test's own row") {
  const DeviceAttributes attributes = Device::open("127.0.0.1").query();
  CHECK(attributes.datagram_backend == "Unix-domain datagrams");
  CHECK(attributes.stream_backend == "Unix-domain streams");
  CHECK(attributes.io_name == "Unix-domain sockets");
  CHECK(Device::why_unavailable(attributes.io).empty());
  CHECK_FALSE(Device::why_unavailable(IoBackend::uring).empty());
  CHECK_THROWS_AS(Device::open("192.0.2.1"), Error);
}

TEST_CASE("a degradation of a backend is counted by its own counter") {
  constexpr size_t kBeyond = size_t{1} << 30;
  const Device device = Device::open("127.0.0.1", {.udp_send_buffer = kBeyond});
  Party party(device);
  CHECK(device.counter("tx_buffer_cut") == 1);
}

}  // namespace diwarp::test
