// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "rnic/engine/endpoint.h"

namespace diwarp::rnic {

/// Has nothing to receive and nothing to send, and counts how often it is asked.
struct CountingEndpoint : Endpoint {
  size_t receive(Time) override {
    ++received;
    return 0;
  }
  Served transmit(Time) override {
    ++transmitted;
    if (on_transmit) on_transmit();
    return {};
  }

  std::function<void()> on_transmit;
  std::atomic<uint64_t> received{0};
  std::atomic<uint64_t> transmitted{0};
};

}  // namespace diwarp::rnic
