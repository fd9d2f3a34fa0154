// SPDX-License-Identifier: Apache-2.0
// A peer is an address and port, as its datagrams come in: queue pairs with several addresses, and
// such behind a network address translator.
#include <map>

#include "llp/forwarding.h"
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A translator between the network and the queue pair at `inner`: to all others its hosts are at
/// the outer addresses that they are mapped to.
struct Translator {
  std::map<std::string, Address> outer;  // by inner address

  Address outside(const Address& inner) const {
    const auto found = outer.find(inner.to_string());
    return found == outer.end() ? inner : found->second;
  }
  Address inside(const Address& address) const {
    for (const auto& [inner, mapped] : outer)
      if (mapped == address) return Address::parse(inner);
    return address;
  }
};

Bytes copy_to(Bytes slot, const llp::IncomingDatagram& datagram) {
  std::copy(datagram.bytes.begin(), datagram.bytes.end(), slot.begin());
  return slot.first(datagram.bytes.size());
}

/// The link of a queue pair outside: it sees those behind the translator at their outer addresses.
class Outside final : public llp::ForwardingDatagramLink {
 public:
  Outside(World::Link inner, const Translator& translator)
      : ForwardingDatagramLink(std::move(inner)), translator_(translator) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    std::vector<llp::OutgoingDatagram> translated(burst.begin(), burst.end());
    for (llp::OutgoingDatagram& datagram : translated)
      datagram.to = translator_.inside(datagram.to);
    return inner().send(translated);
  }
  size_t receive(llp::ReceiveBatch& batch) override {
    llp::ReceiveBatch raw(batch.slots(), batch.slot_bytes(), batch.slots());
    inner().receive(raw);
    batch.clear();
    size_t slot = 0;
    for (const llp::IncomingDatagram& datagram : raw.datagrams())
      batch.add(translator_.outside(datagram.from), copy_to(batch.slot(slot++), datagram));
    return batch.datagrams().size();
  }

 private:
  const Translator& translator_;
};

/// The link of a queue pair that has another address besides: numbers 1 and 2.
class TwoAddresses final : public llp::ForwardingDatagramLink {
 public:
  TwoAddresses(World::Link first, World::Link second)
      : ForwardingDatagramLink(std::move(first)), second_(std::move(second)) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    for (size_t i = 0; i < burst.size(); ++i) {
      DatagramLink& link = burst[i].local == 2 ? *second_ : inner();
      const llp::SendResult result = link.send(burst.subspan(i, 1));
      if (result.sent == 0) return {i, result.status, result.error};
    }
    return {burst.size()};
  }
  size_t receive(llp::ReceiveBatch& batch) override {
    batch.clear();
    size_t slot = 0;
    for (uint32_t number : {1U, 2U}) {
      llp::ReceiveBatch raw(batch.slots() / 2, batch.slot_bytes(), batch.slots() / 2);
      (number == 2 ? *second_ : inner()).receive(raw);
      for (const llp::IncomingDatagram& datagram : raw.datagrams())
        batch.add(datagram.from, copy_to(batch.slot(slot++), datagram), false, number);
    }
    return batch.datagrams().size();
  }
  void on_ready(std::function<void()> callback) override {
    inner().on_ready(callback);
    second_->on_ready(callback);
  }

 private:
  const World::Link second_;
};

/// The link of a queue pair that is reached at the address of this number.
class ReachedAt final : public llp::ForwardingDatagramLink {
 public:
  ReachedAt(World::Link inner, const uint32_t& number, std::vector<uint32_t>& sent_from)
      : ForwardingDatagramLink(std::move(inner)), number_(number), sent_from_(sent_from) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    for (const llp::OutgoingDatagram& datagram : burst) sent_from_.push_back(datagram.local);
    return inner().send(burst);
  }
  size_t receive(llp::ReceiveBatch& batch) override {
    llp::ReceiveBatch raw(batch.slots(), batch.slot_bytes(), batch.slots());
    inner().receive(raw);
    batch.clear();
    size_t slot = 0;
    for (const llp::IncomingDatagram& datagram : raw.datagrams())
      batch.add(datagram.from, copy_to(batch.slot(slot++), datagram), false, number_);
    return batch.datagrams().size();
  }

 private:
  const uint32_t& number_;
  std::vector<uint32_t>& sent_from_;
};

struct Addresses {
  bool run(const std::function<bool()>& done, Duration limit = 60s) {
    for (const Time end = world.clock.now() + limit; world.clock.now() < end;) {
      world.settle();
      if (done()) return true;
      world.clock.advance(1ms);
    }
    return false;
  }
  /// Adds what completes to `all` until there are so many.
  bool collect(Party& party, CompletionQueue Party::*cq, std::vector<WorkCompletion>& all,
               size_t count) {
    return run([&] {
      for (WorkCompletion& one : drain(party.*cq)) all.push_back(std::move(one));
      return all.size() >= count;
    });
  }

  World world;
};

size_t failures(const std::vector<WorkCompletion>& all) {
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const WorkCompletion& one) {
    return one.status != WcStatus::success;
  }));
}

uint64_t restarts(const World& world) {
  uint64_t total = 0;
  for (const Device& device : world.devices) total += device.counter("rd_restarts");
  return total;
}

}  // namespace

TEST_CASE("rd: a queue pair that is reached at two addresses is two peers, side by side") {
  Addresses scene;
  const Address second = Address::parse("10.0.1.1:7000");
  Device& a_device = scene.world.add_device();
  Device& b_device = scene.world.add_device([&](World::Link link) -> World::Link {
    return std::make_unique<TwoAddresses>(std::move(link), scene.world.network->open(second));
  });
  Party a(a_device, rd_options());
  Party b(b_device, rd_options());
  constexpr size_t kRounds = 40;
  std::vector<WorkCompletion> sent;
  std::vector<WorkCompletion> received;
  b.post_receives(2 * kRounds, 64);
  for (size_t round = 0; round < kRounds; ++round) {
    REQUIRE_FALSE(a.send(b.address(), 0, 64, 2 * round));
    REQUIRE_FALSE(a.send(second, 0, 60, 2 * round + 1));
    // Half of the rounds one by one, the others as fast as they go.
    if (round < kRounds / 2) REQUIRE(scene.collect(a, &Party::send_cq, sent, 2 * round + 2));
  }
  REQUIRE(scene.collect(a, &Party::send_cq, sent, 2 * kRounds));
  REQUIRE(scene.collect(b, &Party::recv_cq, received, 2 * kRounds));
  CHECK(failures(sent) == 0);
  CHECK(failures(received) == 0);
  const auto shorter = std::count_if(received.begin(), received.end(),
                                     [](const auto& one) { return one.byte_count == 60; });
  CHECK(shorter == kRounds);
  CHECK(a.qp.peers().size() == 2);
  CHECK(b.qp.peers().size() == 2);
  CHECK(b_device.counter("rd_associations") == 2);
  CHECK(a_device.counter("rd_associations") == 2);
  CHECK(restarts(scene.world) == 0);
}

TEST_CASE("rd: a queue pair that is reached at another address than before answers from there") {
  Addresses scene;
  uint32_t number = 1;
  std::vector<uint32_t> sent_from;
  Device& a_device = scene.world.add_device();
  Device& b_device = scene.world.add_device([&](World::Link link) -> World::Link {
    return std::make_unique<ReachedAt>(std::move(link), number, sent_from);
  });
  Party a(a_device, rd_options());
  Party b(b_device, rd_options());
  b.post_receives(2, 64);
  std::vector<WorkCompletion> sent;
  for (; number <= 2; ++number) {
    CAPTURE(number);
    REQUIRE_FALSE(a.send(b.address(), 0, 64, number));
    REQUIRE(scene.collect(a, &Party::send_cq, sent, number));
    CHECK(sent.back().status == WcStatus::success);
    CHECK(sent_from.back() == number);
  }
  CHECK(b.qp.peers().size() == 1);
}

TEST_CASE("rd: queue pairs behind one translator are peers of their own") {
  Translator translator;
  Addresses scene;
  Device& first = scene.world.add_device();
  Device& second = scene.world.add_device();
  Device& outside = scene.world.add_device([&](World::Link link) -> World::Link {
    return std::make_unique<Outside>(std::move(link), translator);
  });
  std::deque<Party> inside;
  inside.emplace_back(first, rd_options());
  inside.emplace_back(second, rd_options());
  Party b(outside, rd_options());
  translator.outer[inside[0].address().to_string()] = Address::parse("192.0.2.1:1001");
  translator.outer[inside[1].address().to_string()] = Address::parse("192.0.2.1:1002");

  constexpr size_t kEach = 30;
  b.post_receives(2 * kEach, 64);
  for (Party& party : inside) party.post_receives(kEach, 64);
  for (size_t i = 0; i < kEach; ++i) {
    for (Party& party : inside) {
      REQUIRE_FALSE(party.send(b.address(), 0, 64, i));
      REQUIRE_FALSE(b.send(translator.outside(party.address()), 0, 64, i));
    }
  }
  std::vector<WorkCompletion> received;
  std::vector<WorkCompletion> answered;
  REQUIRE(scene.collect(b, &Party::recv_cq, received, 2 * kEach));
  REQUIRE(scene.collect(b, &Party::send_cq, answered, 2 * kEach));
  CHECK(failures(received) + failures(answered) == 0);
  for (Party& party : inside) {
    std::vector<WorkCompletion> sent;
    std::vector<WorkCompletion> came;
    REQUIRE(scene.collect(party, &Party::send_cq, sent, kEach));
    REQUIRE(scene.collect(party, &Party::recv_cq, came, kEach));
    CHECK(failures(sent) + failures(came) == 0);
    CHECK(sent.size() == kEach);
    CHECK(came.size() == kEach);
    const auto theirs = std::count_if(received.begin(), received.end(), [&](const auto& one) {
      return one.source == translator.outside(party.address());
    });
    CHECK(theirs == kEach);
  }
  CHECK(b.qp.peers().size() == 2);
  CHECK(restarts(scene.world) == 0);
}

TEST_CASE("rd: a translator that changes a mapping makes another peer, and nothing comes twice") {
  Translator translator;
  Addresses scene;
  Device& inside = scene.world.add_device();
  Device& outside = scene.world.add_device([&](World::Link link) -> World::Link {
    return std::make_unique<Outside>(std::move(link), translator);
  });
  Party a(inside, rd_options());
  Party b(outside, rd_options());
  Address& outer = translator.outer[a.address().to_string()];
  outer = Address::parse("192.0.2.1:1001");
  b.post_receives(64, 64);
  std::vector<WorkCompletion> sent;
  std::vector<WorkCompletion> received;
  for (uint16_t change = 1; change <= 8; ++change) {
    CAPTURE(change);
    REQUIRE_FALSE(a.send(b.address(), 0, 64, 1));
    REQUIRE(scene.collect(a, &Party::send_cq, sent, sent.size() + 1));
    // The queue pair outside sees another peer, to which it is another peer as well: requests under
    // way may have been delivered, and fail.
    outer = outer.with_port(static_cast<uint16_t>(1001 + change));
    REQUIRE_FALSE(a.send(b.address(), 0, 64, 2));
    REQUIRE(scene.collect(a, &Party::send_cq, sent, sent.size() + 1));
    if (sent.back().status != WcStatus::success)
      CHECK(sent.back().status == WcStatus::peer_restarted);
  }
  REQUIRE_FALSE(a.send(b.address(), 0, 64, 3));
  REQUIRE(scene.collect(a, &Party::send_cq, sent, sent.size() + 1));
  CHECK(sent.back().status == WcStatus::success);
  static_cast<void>(scene.run([] { return false; }, 5s));
  for (WorkCompletion& one : drain(b.recv_cq)) received.push_back(std::move(one));
  const size_t successes = sent.size() - failures(sent);
  CHECK(received.size() >= successes);
  CHECK(received.size() <= sent.size());
  CHECK(b.qp.peers().size() <= 9);
}
