// SPDX-License-Identifier: Apache-2.0
// Whole devices over rings of io_uring that are full of whatever they hold: slower, counted, never
// wrong, never stuck.
#include <iostream>

#include "llp/uring/uring_backend.h"
#include "stack/socket_exchange.h"
#include "support/child.h"
#include "support/confined.h"
#include "support/uring.h"
#include "unit/llp/syscalls.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A ring in which nothing fits twice.
llp::BackendRow smallest_ring() {
  llp::BackendRow row = llp::uring_row();
  row.open = [](const llp::BackendSetup& setup, std::string& why_not) {
    return llp::open_uring(setup,
                           {.submissions = 1,
                            .completions = 2,
                            .datagram_buffers = 1,
                            .stream_buffers = 1,
                            .stream_buffer_bytes = 4096,
                            .files = 1},
                           why_not);
  };
  return row;
}

const llp::BackendRow kSmallestRing = smallest_ring();
const rnic::DeviceParts kSmallest{
    .clock = nullptr, .datagram_links = {}, .backend = &kSmallestRing};

DeviceOptions over_ring(DeviceOptions options) {
  options.io = IoBackend::uring;
  return options;
}
DeviceOptions over_ring() { return over_ring(GENERATE(true, false) ? by_hand() : kByThreads); }

}  // namespace

TEST_CASE("full ring: datagrams through the smallest of rings") {
  if (!has_io_uring()) return;
  const QpType type = datagram_types();
  Datagrams scene(type, over_ring(), kSmallest);
  scene.run();
  CHECK(scene.count("uring_no_buffers") > 0);
  CHECK(scene.count("uring_rearmed") > 0);
}

TEST_CASE("full ring: streams through the smallest of rings") {
  if (!has_io_uring()) return;
  Streams scene(0, over_ring(), kSmallest);
  scene.run();
  CHECK(scene.count("uring_rearmed") > 0);
}

TEST_CASE("full ring: datagrams while the kernel refuses requests") {
  if (!has_io_uring()) return;
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
  if (!has_io_uring()) return;
  const uint32_t every = GENERATE(1U, 2U);
  FaultsForNow faults;
  faults->uring_every = every;
  Streams scene(0, over_ring());
  scene.run();
  CHECK(scene.count("uring_refused") > 0);
}

TEST_CASE("full ring: the smallest socket buffers slow rd and rc down, and lose nothing") {
  if (!has_io_uring()) return;
  DeviceOptions options = over_ring();
  options.udp_receive_buffer = options.udp_send_buffer = 1;
  Datagrams(QpType::rd, options).run();
  Streams(1, options).run();
}

TEST_CASE("full ring: 64 KiB of memory that may be locked are enough for a ring") {
  constexpr int kNoRing = 77;
  const int status = in_child([] {
    if (!limit_locked_memory()) return 1;
    const DeviceOptions options = over_ring(by_hand());
    // One ring fits, also where kernels count its memory as locked. They may still count another
    // one of this user that has just gone.
    DeviceAttributes attributes;
    const bool fits = eventually([&] {
      attributes = Device::open("127.0.0.1", options).query();
      return attributes.io_reason.find("ulimit -l") == std::string::npos;
    });
    if (!fits) return 2;
    if (attributes.io != IoBackend::uring) return kNoRing;
    return exchanges_all(options) ? 0 : 3;
  });
  if (status == kNoRing) {
    std::cout << "SKIPPED: no io_uring for a process without privileges\n";
    return;
  }
  CHECK(status == 0);
}

TEST_CASE("full ring: where a ring is more than may be locked system calls serve") {
  const int status = in_child([] {
    if (!forbid_io_uring(ENOMEM)) return 1;
    const DeviceOptions options = over_ring(by_hand());
    const DeviceAttributes attributes = Device::open("127.0.0.1", options).query();
    if (attributes.io != IoBackend::syscall) return 2;
    if (attributes.io_reason.find("ulimit -l") == std::string::npos) return 3;
    return exchanges_all(options) ? 0 : 4;
  });
  CHECK(status == 0);
}
