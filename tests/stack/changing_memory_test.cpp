// SPDX-License-Identifier: Apache-2.0
// What a Read over datagrams brings while the memory's owner changes it.
#include <functional>

#include "llp/forwarding.h"
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr size_t kLength = 20000;
constexpr std::byte kBefore{0x11};
constexpr std::byte kAfter{0x22};

/// Between CRC and network, memory changes as often as it is told to.
class ChangingLink final : public llp::ForwardingDatagramLink {
 public:
  ChangingLink(World::Link inner, std::function<void()>& change)
      : ForwardingDatagramLink(std::move(inner)), change_(change) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    const bool has_payload =
        std::any_of(burst.begin(), burst.end(), [](const auto& one) { return one.size() > 1000; });
    if (has_payload && change_) std::exchange(change_, {})();
    return inner().send(burst);
  }

 private:
  std::function<void()>& change_;
};

/// A queue pair whose memory changes while it is sent, and one that reads it.
struct Scene {
  explicit Scene(QpType type, uint32_t retries = 0)
      : owner_device(&world.add_device([this](World::Link link) -> World::Link {
          return std::make_unique<ChangingLink>(std::move(link), change);
        })),
        reader_device(&world.add_device()),
        owner(*owner_device, {.type = type}),
        reader(*reader_device, {.datagram = {.read = {.retries = retries}}, .type = type}),
        region(owner.pd, std::span(owner.memory), kAllAccess) {
    std::fill(owner.memory.begin(), owner.memory.end(), kBefore);
    change = [this] { std::fill(owner.memory.begin(), owner.memory.end(), kAfter); };
  }

  WorkCompletion read() {
    REQUIRE_FALSE(reader.qp.post_read({.sges = reader.mr.sge(0, kLength),
                                       .destination = owner.address(),
                                       .remote = {region.rkey(), region.base()}}));
    for (int i = 0; i < 10000; ++i) {
      world.settle();
      if (const auto done = drain(reader.send_cq); !done.empty()) return done.front();
      world.clock.advance(1ms);
    }
    FAIL("the Read never ends");
    return {};
  }
  /// Of what is valid, each byte is one that was there.
  void check(const ValidityMap& valid) {
    for (const auto [offset, length] : valid.ranges())
      for (const std::byte byte : reader.bytes(offset, length))
        REQUIRE((byte == kBefore || byte == kAfter));
  }

  World world;
  std::function<void()> change;
  Device* owner_device;
  Device* reader_device;
  Party owner;
  Party reader;
  MemoryRegion region;
};

}  // namespace

TEST_CASE("memory that changes while it is sent costs an unreliable Read those datagrams") {
  Scene scene(QpType::ud);
  const WorkCompletion done = scene.read();
  CHECK_FALSE(scene.change);
  CHECK(scene.reader_device->counter("drop_crc") > 0);
  CHECK(done.status == WcStatus::timeout);
  CHECK(done.valid_bytes < kLength);
  scene.check(done.validity);
}

TEST_CASE("memory that changes while it is sent is asked for again by a Read with retries") {
  Scene scene(QpType::ud, 3);
  const WorkCompletion done = scene.read();
  CHECK(scene.reader_device->counter("drop_crc") > 0);
  CHECK(done.status == WcStatus::success);
  CHECK(done.valid_bytes == kLength);
  scene.check(done.validity);
}

TEST_CASE("rd: memory that changes while it is sent is sent again as it is then") {
  Scene scene(QpType::rd);
  const WorkCompletion done = scene.read();
  CHECK(scene.reader_device->counter("drop_crc") > 0);
  CHECK(scene.owner_device->counter("rd_retransmitted") > 0);
  CHECK(done.status == WcStatus::success);
  for (const std::byte byte : scene.reader.bytes(0, kLength))
    REQUIRE((byte == kBefore || byte == kAfter));
}
