// SPDX-License-Identifier: Apache-2.0
#include "compare/memory.h"

#include <diwarp/verbs.h>
#include <malloc.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/failure.h"
#include "compare/captured.h"
#include "compare/idle_queue_pairs.h"

namespace diwarp::tools {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr uint32_t kQueuePairs = 256;

/// Of all arenas, and of what was too large for them.
double allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

/// Each even queue pair and the one after it are each other's peer.
class Pairs {
 public:
  Pairs(Device& device, QpType type, uint32_t count)
      : type_(type), idle_(device, type, count), region_(idle_.protection_domain(), memory_) {
    if (type == QpType::rc) connect(device);
  }

  /// Sends a message to each.
  void use() {
    for (size_t i = 0; i < idle_.all().size(); ++i) {
      QueuePair& from = idle_.all()[i];
      QueuePair& to = idle_.all()[i ^ 1];
      const Sge room{memory_.data(), 64, region_.lkey()};
      const Sge message{memory_.data() + 64, 64, region_.lkey()};
      SendWorkRequest request{.sges = {&message, 1}};
      if (is_datagram(type_)) request.destination = to.address();
      if (to.post_recv({.sges = {&room, 1}}) || from.post_send(request)) {
        throw Failure("A message could not be posted.");
      }
      for (int done = 0; done < 2; ++done) {
        if (!idle_.completion_queue().wait(seconds(10))) throw Failure("A message did not come.");
      }
    }
  }

 private:
  void connect(Device& device) {
    Listener listener(device, 0);
    for (size_t i = 0; i < idle_.all().size(); i += 2) {
      std::thread other([&, i] {
        auto request = listener.get_request(seconds(10));
        if (request) request->accept(idle_.all()[i]);
      });
      idle_.all()[i + 1].connect(listener.address());
      other.join();
    }
  }

  QpType type_;
  IdleQueuePairs idle_;
  std::array<std::byte, 128> memory_{};
  MemoryRegion region_;
};

/// Prints bytes per queue pair.
int measure_memory(const Address& address, QpType type, bool used) {
  Device device = Device::open(address);
  Pairs first(device, type, 2);
  if (used) first.use();
  const double before = allocated();
  Pairs pairs(device, type, kQueuePairs);
  if (used) pairs.use();
  std::printf("%.0f\n", (allocated() - before) / kQueuePairs);
  return 0;
}

class MemoryLane final : public Lane {
 public:
  MemoryLane(const Place& place, QpType type, bool used)
      : place_(place), type_(type), used_(used) {}

  void serve() override {}

  Sample measure(Duration) override {
    const Address address = place_.control.local_address().with_port(0);
    Captured child(-1, [&] { return measure_memory(address, type_, used_); });
    const bool ended = child.finish(steady_clock::now() + seconds(30));
    if (!ended || child.status() != 0) {
      throw Failure("The memory of queue pairs could not be measured: " + child.output());
    }
    return {.value = std::strtod(child.output().c_str(), nullptr)};
  }

 private:
  Place place_;
  QpType type_;
  bool used_;
};

}  // namespace

std::unique_ptr<Lane> make_memory_lane(const Place& place, QpType type, bool used) {
  return std::make_unique<MemoryLane>(place, type, used);
}

}  // namespace diwarp::tools
