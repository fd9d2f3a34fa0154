// SPDX-License-Identifier: Apache-2.0
#include "stack/ud_scene.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Sends whole messages whose numbers do not join, each from another source, and takes them.
class Flood {
 public:
  explicit Flood(Scene& scene) : scene_(scene), batch_(64) {}

  void send(uint32_t sources, uint32_t messages) {
    for (uint32_t source = 1; source <= sources; ++source)
      for (uint32_t i = 0; i < messages; ++i) {
        scene_.send(scene_.stranger,
                    {.incarnation = source, .msn = 2 * i, .payload = pattern(4, i)});
        take();
      }
  }
  size_t taken() const { return taken_; }

 private:
  void take() {
    const size_t count = scene_.target.recv_cq.poll(batch_);
    for (size_t i = 0; i < count; ++i) {
      REQUIRE_FALSE(scene_.target.post_recv(batch_[i].wr_id, batch_[i].wr_id * 100, 100));
      ++taken_;
    }
  }

  Scene& scene_;
  std::vector<WorkCompletion> batch_;
  size_t taken_ = 0;
};

}  // namespace

TEST_CASE("the memory of UD for its sources stays within its bound, and is given back in time") {
  constexpr size_t kBound = 256 << 10;
  Scene scene({.datagram = {.max_source_memory = kBound, .source_timeout = 10s}});
  scene.target.post_receives(64, 100);
  Flood flood(scene);
  flood.send(1, 1);  // what the queue pair has once
  scene.world.advance(20s);
  const size_t before = allocated_bytes();
  flood.send(100, 300);
  CHECK(flood.taken() == 1 + 100 * 300);
  const size_t held = allocated_bytes() - before;
  CHECK(held > kBound / 4);
  CHECK(held < kBound + kBound / 2);  // with the allocator's own, and the tables' buckets
  scene.world.advance(10s);
  // The tables' buckets stay.
  CHECK(allocated_bytes() - before < kBound / 16);
}
