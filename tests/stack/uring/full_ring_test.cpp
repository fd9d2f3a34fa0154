// SPDX-License-Identifier: Apache-2.0
// Whole devices over rings of io_uring that are full of whatever they hold: slower, counted, never
// wrong, never stuck.
#include <sys/resource.h>

#include <iostream>

#include "llp/uring.h"
#include "rnic/device.h"
#include "stack/socket_exchange.h"
#include "unit/llp/syscalls.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Devices opened while it lives have rings like this.
struct Rings {
  explicit Rings(const llp::UringOptions& options) { rnic::io_defaults().ring = options; }
  ~Rings() { rnic::io_defaults().ring = {}; }
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
};

/// Nothing fits twice.
constexpr llp::UringOptions kSmallest{.submissions = 1,
                                      .completions = 2,
                                      .datagram_buffers = 1,
                                      .stream_buffers = 1,
                                      .stream_buffer_bytes = 4096,
                                      .files = 1};

bool has_uring() {
  if (llp::why_no_uring().empty()) return true;
  std::cout << "SKIPPED: no io_uring: " << llp::why_no_uring() << "\n";
  return false;
}

DeviceOptions over_ring() {
  DeviceOptions options = GENERATE(true, false) ? by_hand() : kByThreads;
  options.io = IoBackend::uring;
  return options;
}

}  // namespace

TEST_CASE("full ring: datagrams through the smallest of rings") {
  if (!has_uring()) return;
  const QpType type = datagram_types();
  const Rings rings(kSmallest);
  Datagrams scene(type, over_ring());
  scene.run();
  CHECK(scene.count("uring_no_buffers") + scene.count("uring_rearmed") > 0);
}

TEST_CASE("full ring: streams through the smallest of rings") {
  if (!has_uring()) return;
  const Rings rings(kSmallest);
  Streams scene(0, over_ring());
  scene.run();
  CHECK(scene.count("uring_rearmed") > 0);
}

TEST_CASE("full ring: datagrams while the kernel refuses requests") {
  if (!has_uring()) return;
  const QpType type = datagram_types();
  const uint32_t every = GENERATE(1U, 2U);
  FaultsForNow faults;
  faults->uring_every = every;
  Datagrams scene(type, over_ring());
  scene.run();
  CHECK(scene.count("uring_refused") > 0);
  CHECK(scene.count("tx_errors") == 0);
}

TEST_CASE("full ring: streams while the kernel refuses requests") {
  if (!has_uring()) return;
  const uint32_t every = GENERATE(1U, 2U);
  FaultsForNow faults;
  faults->uring_every = every;
  Streams scene(0, over_ring());
  scene.run();
  CHECK(scene.count("uring_refused") > 0);
}

TEST_CASE("full ring: the smallest socket buffers slow rd and rc down, and lose nothing") {
  if (!has_uring()) return;
  DeviceOptions options = over_ring();
  options.udp_receive_buffer = options.udp_send_buffer = 1;
  Datagrams(QpType::rd, options).run();
  Streams(1, options).run();
}

TEST_CASE("full ring: 64 KiB of memory that may be locked are enough, or system calls serve") {
  CHECK(in_child([] {
    const rlimit least{64 << 10, 64 << 10};
    if (::setrlimit(RLIMIT_MEMLOCK, &least) != 0) return false;
    DeviceOptions options = by_hand();
    options.io = IoBackend::uring;
    try {
      Datagrams(QpType::ud, options).run();
      Streams(0, options).run();
    } catch (...) {
      return false;
    }
    return true;
  }));
}
