// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stack/support.h"

namespace diwarp::test {

using Ids = std::vector<uint64_t>;

/// A queue pair, and strangers who send it segments.
struct Scene {
  explicit Scene(const PartyOptions& options = {}) : target(device, options) {}

  uint64_t count(const char* counter) const { return device.counter(counter); }
  void send(Stranger& from, const Segment& segment) {
    from.send(target.address(), segment);
    world.settle();
  }
  /// One of two segments of 10 bytes each of a message of 20.
  Segment half(uint32_t msn, bool second) const {
    return {.msn = msn, .offset = second ? 10U : 0U, .last = second, .payload = pattern(10, msn)};
  }
  Segment whole(uint32_t msn, size_t size = 10) const {
    return {.msn = msn, .payload = pattern(size, msn)};
  }
  std::vector<uint64_t> received() {
    std::vector<uint64_t> ids;
    for (const WorkCompletion& completion : drain(target.recv_cq)) {
      CHECK(completion.status == WcStatus::success);
      ids.push_back(completion.wr_id);
    }
    return ids;
  }

  World world;
  Device& device = world.add_device();
  Party target;
  Stranger stranger{world};
};

}  // namespace diwarp::test
