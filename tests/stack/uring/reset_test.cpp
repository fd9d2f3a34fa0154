// SPDX-License-Identifier: Apache-2.0
// Connections that a peer resets, whichever backend reads them.
#include "stack/rc_support.h"
#include "stack/socket_exchange.h"
#include "support/held_thread.h"

namespace diwarp::test {
namespace {

DeviceOptions backends() {
  DeviceOptions options = by_hand();
  options.io = GENERATE(IoBackend::syscall, IoBackend::uring);
  return options;
}

}  // namespace

TEST_CASE("bytes that came before a reset are delivered though it is a send that meets the reset") {
  const Device device = Device::open("127.0.0.1", backends());
  RcParty party(device);
  auto [peer, end] = raw_pair();
  party.post_receives(2, 100);
  StreamEnd stream = stream_of(std::move(end));
  // A ring's completions wait for the thread that made the request.
  HeldThread reader([&] { party.impl().start(negotiated(std::move(stream), true)); });
  REQUIRE(peer.send(fpdu_bytes(Fpdu{.payload = text("before")})));
  peer.reset();
  reader.release();
  REQUIRE(eventually([&] {
    static_cast<void>(party.send(0, 1));
    return party.qp.state() == QpState::error;
  }));
  CHECK(statuses(party.recv_cq) == Statuses{WcStatus::success, WcStatus::wr_flush_error});
  CHECK(same(party.bytes(0, 6), text("before")));
  CHECK(device.counter("rc_resets") == 1);
  CHECK(device.counter("rc_disconnects") == 0);
}

}  // namespace diwarp::test
