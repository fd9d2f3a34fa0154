// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "backends.h"
#include "base/counters.h"
#include "llp/datagram_link.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::test {

/// A ring of its own, if the system allows one, and what to read its links with.
struct RingScene {
  explicit RingScene(llp::UringOptions options = {}) {
    options.counters = &counters;
    queue = Ring::make(options);
  }
  explicit operator bool() const { return queue != nullptr; }
  uint64_t count(Counter counter) const { return counters.get(counter); }
  std::unique_ptr<llp::UringUdpLink> open(
      const Address& local = Address::loopback(AddressFamily::ipv4)) const {
    return llp::UringUdpLink::open(queue, local);
  }

  Counters counters;
  std::shared_ptr<llp::UringQueue> queue;
  llp::ReceiveBatch batch{8, 65536, 1024};
};

}  // namespace diwarp::test
