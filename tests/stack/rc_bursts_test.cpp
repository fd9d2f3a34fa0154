// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// How much of a long message one call gives to the stream.
namespace diwarp::test {

namespace {

constexpr size_t kLong = size_t{3} << 20;

/// Notes how many bytes each call sent.
class Noting final : public llp::Stream {
 public:
  Noting(StreamEnd inner, std::vector<size_t>& sent) : inner_(std::move(inner)), sent_(sent) {}

  llp::IoResult send(std::span<const ConstBytes> pieces) override {
    const llp::IoResult result = inner_->send(pieces);
    if (result.status == llp::IoStatus::ok) sent_.push_back(result.bytes);
    return result;
  }
  llp::IoResult receive(Bytes buffer) override { return inner_->receive(buffer); }
  void shutdown_send() override { inner_->shutdown_send(); }
  void abort() override { inner_->abort(); }
  size_t maximum_segment() const override { return inner_->maximum_segment(); }
  Address local_address() const override { return inner_->local_address(); }
  Address peer_address() const override { return inner_->peer_address(); }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

 private:
  const StreamEnd inner_;
  std::vector<size_t>& sent_;
};

/// Two connections from one device to another.
struct Bursts {
  Bursts() : device(world.add_device()), other(world.add_device()) {}

  /// Connects a and b; both may send.
  void join_first() {
    auto ends = llp::memory_stream_pair(2 * kLong, 65480);
    ends.first = std::make_unique<Noting>(std::move(ends.first), sent);
    join(a, b, std::move(ends));
    REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, 0, b.remote()));
    world.settle();
    sent.clear();
  }
  /// The largest burst of a's that a Write takes, or its response to a Read.
  size_t largest_of(WrOpcode opcode) {
    a.fill(pattern(kLong, 1));
    const bool writes = opcode == WrOpcode::rdma_write;
    RcParty& requester = writes ? a : b;
    const RcParty& other_end = writes ? b : a;
    REQUIRE_FALSE(requester.post(opcode, 0, kLong, other_end.remote()));
    world.settle();
    CHECK(b.memory == a.memory);
    REQUIRE_FALSE(sent.empty());
    return *std::max_element(sent.begin(), sent.end());
  }

  World world;
  Device& device;
  Device& other;
  RcParty a{device, {.memory = kLong, .access = kOpen}};
  RcParty b{other, {.memory = kLong, .access = kOpen}};
  std::vector<size_t> sent;
};

}  // namespace

TEST_CASE("A long message leaves in bursts of a mebibyte where no other queue pair has work") {
  Bursts scene;
  scene.join_first();
  const size_t largest = scene.largest_of(WrOpcode::rdma_write);
  CHECK(largest >= rnic::kLoneBurstBytes);
  CHECK(largest < rnic::kLoneBurstBytes + 65536);
}

TEST_CASE("The response to a long Read leaves in bursts of half a mebibyte as it is copied first") {
  Bursts scene;
  scene.join_first();
  const size_t largest = scene.largest_of(WrOpcode::rdma_read);
  CHECK(largest >= rnic::kStagedBurstBytes);
  CHECK(largest < rnic::kStagedBurstBytes + 65536);
}

TEST_CASE("A long message leaves in short bursts where another queue pair has work") {
  const WrOpcode opcode = GENERATE(WrOpcode::rdma_write, WrOpcode::rdma_read);
  Bursts scene;
  scene.join_first();
  RcParty c(scene.device);
  RcParty d(scene.other);
  join(c, d, llp::memory_stream_pair(1 << 20, 65480));
  CHECK(scene.largest_of(opcode) < rnic::kBurstBytes + 65536);
}

}  // namespace diwarp::test
