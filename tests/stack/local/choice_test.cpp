// SPDX-License-Identifier: Apache-2.0
// What goes through shared memory in this program, whose devices send nothing another way.
#include "stack/socket_exchange.h"

#include <memory>
#include <vector>

#include "llp/local/local_stream.h"
#include "stack/rc_support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Streams that the cases make themselves, past the connector.
[[maybe_unused]] const bool kStreamsAreLocal = [] {
  between_devices = [](StreamEnd stream) -> StreamEnd {
    return std::make_unique<llp::LocalStream>(std::move(stream), true);
  };
  return true;
}();

}  // namespace

TEST_CASE("all operations over datagrams go through shared memory, in both modes") {
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  const bool manual = GENERATE(true, false);
  CAPTURE(to_string(type), manual);
  Datagrams scene(type, manual ? by_hand() : kByThreads);
  scene.run();
  CHECK(scene.count("local_peers") >= 2);  // more, where a ring was silent for a second
  // The last acknowledgements may be under way.
  CHECK(eventually([&] { return scene.count("local_datagrams") == scene.count("tx_datagrams"); }));
  CHECK(eventually([&] { return scene.count("rx_datagrams") == scene.count("local_datagrams"); }));
  CHECK(scene.count("local_overflow") == 0);
  CHECK(scene.count("local_refused") == 0);
}

TEST_CASE("all operations over streams go through shared memory, in both modes") {
  const bool manual = GENERATE(true, false);
  CAPTURE(manual);
  Streams scene(0, manual ? by_hand() : kByThreads);
  scene.run();
  CHECK(scene.count("local_peers") >= 2);
  CHECK(scene.count("rc_tx_bytes") != 0);
  CHECK(scene.count("local_bytes") == scene.count("rc_tx_bytes"));
  CHECK(scene.count("rc_rx_bytes") == scene.count("local_bytes"));
  CHECK(scene.count("local_refused") == 0);
}

TEST_CASE("a connection that is made by connecting and accepting goes through shared memory") {
  Device one = Device::open("127.0.0.1");
  Device two = Device::open("127.0.0.1");
  RcParty a(one);
  RcParty b(two);
  connect(a, b, two);
  for (RcParty* from : {&a, &b}) {
    RcParty& into = from == &a ? b : a;
    const Sge room = into.mr->sge(64, 64);
    REQUIRE_FALSE(into.qp.post_recv({.sges = {&room, 1}}));
    REQUIRE_FALSE(from->post(WrOpcode::send, 0, 64, {}));
    CHECK(next(from->send_cq).status == WcStatus::success);
    CHECK(next(into.recv_cq).byte_count == 64);
  }
  for (const Device* device : {&one, &two}) {
    CHECK(device->counter("local_bytes") != 0);
    CHECK(device->counter("local_bytes") == device->counter("rc_tx_bytes"));
  }
}

TEST_CASE("a device says that it sends through shared memory") {
  const Device device = Device::open("127.0.0.1");
  CHECK(device.query().datagram_backend.find("shared memory") != std::string::npos);
  CHECK(device.query().stream_backend.find("shared memory") != std::string::npos);
}

TEST_CASE("more streams than an engine polls without pause go through rings at once") {
  constexpr size_t kStreams = 24;
  constexpr size_t kBytes = 300'000;  // a queue pair reads an entry of these in several steps
  const Device one = Device::open("127.0.0.1");
  const Device two = Device::open("127.0.0.1");
  std::vector<std::unique_ptr<RcParty>> from;
  std::vector<std::unique_ptr<RcParty>> into;
  for (size_t i = 0; i < kStreams; ++i) {
    from.push_back(std::make_unique<RcParty>(one, RcOptions{.memory = kBytes}));
    into.push_back(std::make_unique<RcParty>(two, RcOptions{.memory = kBytes}));
    connect(*from[i], *into[i], two);
    from[i]->fill(pattern(kBytes, static_cast<uint32_t>(i)));
    into[i]->post_receives(1, kBytes);
  }
  for (const auto& party : from) REQUIRE_FALSE(party->send(0, kBytes));
  for (size_t i = 0; i < kStreams; ++i) {
    CHECK(next(into[i]->recv_cq).status == WcStatus::success);
    CHECK(same(from[i]->memory, into[i]->memory));
  }
  CHECK(one.counter("local_bytes") == one.counter("rc_tx_bytes"));
}
