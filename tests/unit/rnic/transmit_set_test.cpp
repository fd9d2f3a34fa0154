// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/transmit_set.h"

#include <unistd.h>

#include <array>
#include <chrono>

#include "base/unique_fd.h"
#include "rnic/engine/endpoint.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace {

/// A source that says what it waits for after each burst.
struct Sender : Endpoint {
  size_t receive(Time) override { return 0; }
  Served transmit(Time) override {
    ++bursts;
    return {.work = work, .pending = pending};
  }

  size_t bursts = 0;
  size_t work = 1;
  Pending pending = Pending::nothing;
};

struct Scene {
  ~Scene() {
    for (Sender& sender : senders) transmits.detach(sender);
  }
  void attach() {
    for (Sender& sender : senders) transmits.attach(sender);
  }

  EngineWait wait;
  EngineInbox inbox;
  InputSet inputs{wait, [](TransmitSource&) {}};
  TransmitSet transmits{inbox, inputs, nullptr};
  std::array<Sender, 2> senders;
  const Time now = Time{} + std::chrono::seconds(100);
};

}  // namespace

TEST_CASE("transmit set: a source that was activated is served once, and only while in service") {
  Scene scene;
  Sender& sender = scene.senders[0];
  scene.transmits.activate(sender);
  CHECK(scene.transmits.empty());
  scene.attach();
  scene.transmits.activate(sender);
  scene.transmits.activate(sender);
  CHECK_FALSE(scene.transmits.empty());
  CHECK(scene.transmits.transmit(scene.now) == 1);
  CHECK(sender.bursts == 1);
  CHECK(scene.transmits.empty());
  scene.transmits.activate(sender);
  scene.transmits.detach(sender);
  CHECK(scene.transmits.empty());
  CHECK(scene.transmits.transmit(scene.now) == 0);
}

TEST_CASE("transmit set: a lone source is served without standing in line") {
  Scene scene;
  Sender& sender = scene.senders[0];
  CHECK(scene.transmits.activate_and_transmit(sender, scene.now) == 0);  // not in service
  scene.attach();
  CHECK(scene.transmits.activate_and_transmit(sender, scene.now) == 1);
  CHECK(sender.bursts == 1);
  CHECK(scene.transmits.empty());
  sender.pending = Pending::more;
  CHECK(scene.transmits.activate_and_transmit(sender, scene.now) == 1);
  CHECK_FALSE(scene.transmits.empty());
}

TEST_CASE("transmit set: a source that others stand before waits for its turn") {
  Scene scene;
  scene.attach();
  scene.transmits.activate(scene.senders[0]);
  CHECK(scene.transmits.activate_and_transmit(scene.senders[1], scene.now) == 2);
  for (const Sender& sender : scene.senders) CHECK(sender.bursts == 1);
  CHECK(scene.transmits.empty());
}

TEST_CASE("transmit set: a stalled source that is activated and served is not stalled any more") {
  Scene scene;
  scene.attach();
  Sender& sender = scene.senders[0];
  sender.pending = Pending::stalled;
  CHECK(scene.transmits.activate_and_transmit(sender, scene.now) == 1);
  CHECK(scene.transmits.any_stalled());
  sender.pending = Pending::nothing;
  CHECK(scene.transmits.activate_and_transmit(sender, scene.now) == 1);
  CHECK_FALSE(scene.transmits.any_stalled());
}

TEST_CASE("transmit set: a source with more to send has another turn in the next round") {
  Scene scene;
  scene.attach();
  scene.senders[0].pending = Pending::more;
  for (Sender& sender : scene.senders) scene.transmits.activate(sender);
  CHECK(scene.transmits.transmit(scene.now) == 2);
  CHECK_FALSE(scene.transmits.empty());
  CHECK(scene.transmits.transmit(scene.now) == 1);
  CHECK(scene.senders[0].bursts == 2);
  CHECK(scene.senders[1].bursts == 1);
}

TEST_CASE("transmit set: a stalled source is not served until a completion queue was polled") {
  Scene scene;
  scene.attach();
  Sender& sender = scene.senders[0];
  sender.pending = Pending::stalled;
  scene.transmits.activate(sender);
  scene.transmits.transmit(scene.now);
  CHECK(scene.transmits.any_stalled());
  CHECK_FALSE(sender.is_scheduled());
  CHECK(scene.transmits.empty());
  scene.transmits.take_inbox();
  CHECK(scene.transmits.any_stalled());
  scene.inbox.unstall();
  CHECK_FALSE(scene.inbox.empty());
  CHECK(scene.transmits.take_inbox() == 0);
  CHECK(scene.inbox.empty());
  CHECK_FALSE(scene.transmits.any_stalled());
  CHECK(scene.transmits.transmit(scene.now) == 1);
  CHECK(sender.bursts == 2);
}

TEST_CASE("transmit set: what activates a stalled source ends its stall") {
  Scene scene;
  scene.attach();
  scene.transmits.stall(scene.senders[0]);
  scene.transmits.stall(scene.senders[0]);
  CHECK(scene.transmits.any_stalled());
  scene.transmits.activate(scene.senders[0]);
  CHECK_FALSE(scene.transmits.any_stalled());
  CHECK(scene.senders[0].is_scheduled());
  // One that stands in line does not stall.
  scene.transmits.stall(scene.senders[0]);
  CHECK_FALSE(scene.transmits.any_stalled());
  scene.transmits.stall(scene.senders[1]);
  scene.transmits.detach(scene.senders[1]);
  CHECK_FALSE(scene.transmits.any_stalled());
}

TEST_CASE("transmit set: sources from the inbox get in line in their order, each once") {
  Scene scene;
  scene.attach();
  CHECK(scene.inbox.empty());
  for (int i = 0; i < 2; ++i)
    for (Sender& sender : scene.senders) scene.inbox.add(sender);
  CHECK(scene.inbox.has_sources());
  CHECK(scene.transmits.take_inbox() == 2);
  CHECK_FALSE(scene.inbox.has_sources());
  CHECK(scene.senders[0].is_scheduled());
  CHECK(scene.transmits.transmit(scene.now) == 2);
  scene.inbox.add(scene.senders[0]);
  CHECK(scene.transmits.take_inbox() == 1);
}

TEST_CASE("transmit set: a source that leaves with its notice in the inbox is met no more") {
  Scene scene;
  scene.attach();
  scene.inbox.add(scene.senders[0]);
  scene.transmits.detach(scene.senders[0]);
  CHECK_FALSE(scene.inbox.has_sources());
  CHECK(scene.transmits.empty());
}

TEST_CASE("transmit set: a source is alone while no other stands in line") {
  Scene scene;
  scene.attach();
  CHECK(scene.transmits.is_alone(scene.senders[0]));
  scene.transmits.activate(scene.senders[1]);
  CHECK_FALSE(scene.transmits.is_alone(scene.senders[0]));
  scene.transmits.transmit(scene.now);
  CHECK(scene.transmits.is_alone(scene.senders[0]));
}

TEST_CASE("transmit set: a source whose link is full waits for the poller, or tries again") {
  Scene scene;
  Sender& sender = scene.senders[0];
  sender.pending = Pending::writable;
  sender.work = 0;
  // Without a link that could be watched it has a turn in each round.
  scene.attach();
  scene.transmits.activate(sender);
  scene.transmits.transmit(scene.now);
  CHECK(sender.is_scheduled());
  scene.transmits.detach(sender);

  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const UniqueFd reading(ends[0]), writing(ends[1]);
  scene.inputs.attach(sender, &sender, writing.get(), nullptr);
  scene.transmits.attach(sender, &sender);
  scene.transmits.activate(sender);
  scene.transmits.transmit(scene.now);
  CHECK_FALSE(sender.is_scheduled());
  CHECK(scene.transmits.empty());
  scene.transmits.detach(sender);
  scene.inputs.detach(sender);
}
