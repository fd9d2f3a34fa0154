// SPDX-License-Identifier: Apache-2.0
// Each secret of a queue pair has a key of its own, and so has each table whose entries strangers
// choose. The keys of most tables show nowhere, so this program counts how many are drawn.
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "base/siphash.h"
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

std::atomic<size_t> keys_drawn{0};

/// How many keys `work` draws.
template <class Work>
size_t keys_of(Work&& work) {
  const size_t before = keys_drawn;
  work();
  return keys_drawn - before;
}

}  // namespace

// The C library's name, which the program's own definition takes.
extern "C" ssize_t getrandom(void* target, size_t bytes, unsigned flags) {
  if (bytes == sizeof(SipKey)) ++keys_drawn;
  return ::syscall(SYS_getrandom, target, bytes, flags);
}

TEST_CASE("counted keys: of its names, cookies, sinks and tables each has one") {
  World world;
  Device& device = world.add_device();
  // UD: names, cookies, sinks, the table of sources.
  CHECK(keys_of([&] { Party party(device); }) == 4);
  // RD: names, cookies, sinks, the tables of hosts and of peers.
  CHECK(keys_of([&] { Party party(device, rd_options()); }) == 5);
}

TEST_CASE("counted keys: an order of completions for each peer has one") {
  World world;
  Device& device = world.add_device();
  const PartyOptions plain = rd_options();
  const PartyOptions by_peer =
      rd_options({.reliable = {.completion_order = CompletionOrder::peer}});
  CHECK(keys_of([&] { Party party(device, by_peer); }) ==
        keys_of([&] { Party party(device, plain); }) + 1);
}

TEST_CASE("counted keys: the shares of a shared receive queue have one") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  const SharedReceiveQueue srq(pd);
  QueuePair qp(pd, {.type = QpType::rd, .send_cq = cq, .recv_cq = cq, .srq = srq});
  CHECK(keys_of([&] {
          for (const char* host : {"10.0.1.1", "10.0.1.2"})
            REQUIRE_FALSE(qp.post_send({.destination = Address::parse(host, 7000)}));
          world.settle();
        }) == 1);
}

TEST_CASE("counted keys: the requests that a listener keeps have one") {
  const Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
  CHECK(keys_of([&] { Listener listener(device, 0); }) == 1);
}
