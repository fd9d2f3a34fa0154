// SPDX-License-Identifier: Apache-2.0
// Links and streams that block, take parts, refuse and narrow: everything arrives, and the counters
// tell why it took longer.
#include "llp/impairment/faults.h"
#include "stack/exchange.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Devices whose links have these faults.
struct FaultyScene {
  FaultyScene(QpType type, const llp::LinkFaults& faults)
      : options(exchange_options(type, 0)),
        a_device(world.add_device(wrap(faults))),
        b_device(world.add_device(wrap(faults))),
        a(a_device, options),
        b(b_device, options),
        region(b.pd, std::span(b.memory), kAllAccess) {}

  World::Wrap wrap(const llp::LinkFaults& faults) {
    return [this, faults](World::Link link) -> World::Link {
      auto made = std::make_unique<llp::FaultyDatagramLink>(std::move(link), faults);
      links.push_back(made.get());
      return made;
    };
  }
  void step() {
    for (Device& device : world.devices) device.progress();
    world.clock.advance(20us);
  }
  Exchange<Party> exchange() {
    return {a, b, b.address(), [this] { step(); }};
  }
  uint64_t injected() const {
    uint64_t total = 0;
    for (const llp::FaultyDatagramLink* link : links) total += link->injected();
    return total;
  }

  const PartyOptions options;
  World world;
  std::vector<llp::FaultyDatagramLink*> links;
  Device& a_device;
  Device& b_device;
  Party a;
  Party b;
  MemoryRegion region;
};

QpType datagram_types() { return GENERATE(QpType::ud, QpType::rd); }

}  // namespace

TEST_CASE("faults: a link that blocks every second call loses nothing, and waits are counted") {
  const QpType type = datagram_types();
  FaultyScene scene(type, {.block_every = 2, .idle_every = 2});
  scene.exchange().all(scene.region);
  CHECK(scene.a_device.counter("tx_would_block") + scene.b_device.counter("tx_would_block") ==
        scene.injected());
  CHECK(scene.injected() > 0);
  CHECK(scene.a_device.counter("tx_errors") == 0);
}

TEST_CASE(
    "faults: datagrams that a full link did not take go out once it has room, without a timer") {
  const QpType type = datagram_types();
  FaultyScene scene(type, {.block_every = 2});
  scene.b.post_receives(20, 3000);
  for (uint64_t i = 0; i < 20; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 3000, i));
  for (int round = 0; round < 500; ++round)
    for (Device& device : scene.world.devices) device.progress();
  CHECK(drain(scene.b.recv_cq).size() == 20);
}

TEST_CASE("faults: a link that takes a few datagrams at a time loses nothing") {
  const QpType type = datagram_types();
  FaultyScene scene(type, {.seed = GENERATE(1U, 2U), .take_at_most = 3});
  scene.exchange().all(scene.region);
  CHECK(scene.injected() > 0);
}

TEST_CASE("faults: a path that narrows in the middle of messages costs nothing but datagrams") {
  const QpType type = datagram_types();
  // The large messages have about 800 datagrams of the first size.
  FaultyScene scene(type, {.paths = {{.after = 0, .max_datagram = 1472},
                                     {.after = 300, .max_datagram = 1272},
                                     {.after = 301, .max_datagram = 1000},
                                     {.after = 1500, .max_datagram = 548},
                                     {.after = 4000, .max_datagram = 300}}});
  scene.exchange().all(scene.region);
  CHECK(scene.injected() >= 3);
  CHECK(scene.a_device.counter("tx_errors") + scene.b_device.counter("tx_errors") ==
        scene.injected());
}

TEST_CASE("faults: datagrams refused for a size that fits the path by now are sent again") {
  const QpType type = datagram_types();
  const uint32_t in_a_row = GENERATE(1U, 2U, 5U);  // it may have narrowed again meanwhile
  FaultyScene scene(type,
                    {.refuse_every = 50, .refuse_error = EMSGSIZE, .refuse_in_a_row = in_a_row});
  scene.exchange().all(scene.region);
  CHECK(scene.injected() > 0);
}

TEST_CASE("faults: rd sends what was refused, for whatever reason, again") {
  const int error = GENERATE(EPERM, EIO, EINVAL, ENETUNREACH, EHOSTUNREACH, ENOTSUP, ECONNREFUSED);
  CAPTURE(error);
  FaultyScene scene(QpType::rd, {.refuse_every = 20, .refuse_error = error});
  scene.exchange().all(scene.region);
  CHECK(scene.injected() > 0);
  CHECK(scene.a_device.counter("tx_errors") + scene.b_device.counter("tx_errors") ==
        scene.injected());
  CHECK(scene.a_device.counter("rd_retransmitted") > 0);
}

TEST_CASE("faults: a ud message that is refused ends with the system's error, others go on") {
  const int error = GENERATE(EPERM, EIO, ENETUNREACH, ENOTSUP);
  FaultyScene scene(QpType::ud, {.refuse_every = 5, .refuse_error = error});
  scene.b.post_receives(100, 64);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, i));
    const auto done = completion_of(scene.a.send_cq, [&] { scene.step(); });
    REQUIRE(done);
    CHECK(done->wr_id == i);
    if (done->status == WcStatus::success) continue;
    CHECK(done->status == WcStatus::local_qp_operation_error);
    CHECK(done->vendor_error == static_cast<uint32_t>(error));
    ++refused;
  }
  CHECK(refused == 20);
  CHECK(scene.a_device.counter("tx_errors") == 20);
  for (int i = 0; i < 80; ++i)
    CHECK(completion_of(scene.b.recv_cq, [&] { scene.step(); }).has_value());
  CHECK(scene.a.qp.state() == QpState::rts);
}

TEST_CASE("faults: streams that block, and move a byte at a time and up, lose nothing") {
  const llp::StreamFaults faults =
      GENERATE(llp::StreamFaults{.seed = 1, .block_every = 2},
               llp::StreamFaults{.seed = 2, .block_every = 2, .move_at_most = 1},
               llp::StreamFaults{.seed = 3, .block_every = 3, .move_at_most = 100},
               llp::StreamFaults{.seed = 4, .move_at_most = 5000});
  const bool markers = GENERATE(false, true);
  const bool crc = GENERATE(true, false);
  if (markers && !crc) return;
  CAPTURE(faults.move_at_most, markers, crc);
  World world;
  const RcOptions options{.memory = kExchangeMemory, .access = kOpen};
  Device& a_device = world.add_device();
  Device& b_device = world.add_device();
  RcParty a(a_device, options);
  RcParty b(b_device, options);
  auto ends = llp::memory_stream_pair(1 << 16, 1460);
  const mpa::NegotiatedParameters parameters{
      .crc = crc, .send_markers = markers, .receive_markers = markers, .ord = 4, .ird = 4};
  join(a, b,
       {std::make_unique<llp::FaultyStream>(std::move(ends.first), faults),
        std::make_unique<llp::FaultyStream>(std::move(ends.second), faults)},
       parameters);
  const Exchange<RcParty> exchange{a, b, {}, [&] {
                                     for (Device& device : world.devices) device.progress();
                                   }};
  // A byte a step is for messages of a few segments.
  const size_t largest = faults.move_at_most == 1 ? 3000 : kLargeMessage;
  for (const size_t size : kMessageSizes) {
    if (size > largest) continue;
    exchange.send(size, size + 1);
    exchange.write(size, size + 2, *b.mr);
    exchange.read(size, size + 3, *b.mr);
  }
  CHECK(a_device.counter("tx_would_block") > 0);
  CHECK(a_device.counter("rc_crc_errors") + b_device.counter("rc_crc_errors") == 0);
}
