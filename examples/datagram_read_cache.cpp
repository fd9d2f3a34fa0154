// SPDX-License-Identifier: Apache-2.0
// A cache of a server's object: before each use the client Reads the object's version, 8 bytes,
// over datagrams, and Reads the object again only if that changed. Reads and their answers may get
// lost, so they have a timeout and retries. The server computes; after set-up it calls no verb at
// all.
#include <diwarp/verbs.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <iostream>

#include "common.h"

using namespace std::chrono_literals;

struct Object {
  alignas(8) uint64_t version = 0;  // odd while the server changes the object
  std::array<uint64_t, 127> primes{};
};

/// A seqlock's writer. A Read is no atomic operation, and C++ knows nothing of the RNIC: what this
/// rests on is that the host stores 8 aligned bytes at once, in the order of these fences.
void publish(Object& object, uint64_t value) {
  std::atomic_ref version(object.version);
  const uint64_t before = version.load(std::memory_order_relaxed);
  version.store(before + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  object.primes.fill(value);
  version.store(before + 2, std::memory_order_release);
}

void compute(Object& object) {
  uint64_t found = 0;
  for (uint64_t candidate = 2; candidate <= 100'000; ++candidate) {
    uint64_t divisor = 2;
    while (divisor * divisor <= candidate && candidate % divisor != 0) ++divisor;
    found += divisor * divisor > candidate ? 1 : 0;
    if (candidate % 20'000 == 0) publish(object, found);
  }
}

struct Client : example::End {
  Client() : End(diwarp::QpType::ud) {}

  void read(const diwarp::Sge& into) {
    example::check(qp.post_read({.sges = into,
                                 .destination = server,
                                 .remote = remote,
                                 .limits = {.timeout = 50ms, .retries = 100}}));
    example::next(cq);
  }

  uint64_t read_version() {
    read(version_region.sge());
    return version;
  }

  /// A seqlock's reader: three Reads, each begun when the one before is done. What lies between two
  /// equal, even versions did not change meanwhile.
  void fetch() {
    for (uint64_t before = read_version();; before = version) {
      read(copy_region.sge());
      if (read_version() == before && before % 2 == 0) return;
    }
  }

  diwarp::Address server;
  diwarp::RemoteMemory remote;
  Object copy;
  uint64_t version = 0;
  diwarp::MemoryRegion copy_region{pd, &copy, sizeof copy}, version_region{pd, &version, 8};
};

int main(int argc, char**) try {
  example::take_no_arguments(argc);
  example::End server(diwarp::QpType::ud);
  Object object;
  diwarp::MemoryRegion region(server.pd, &object, sizeof object, diwarp::Access::remote_read);
  Client client;
  client.server = server.qp.address();
  client.remote = {region.rkey(), region.base()};
  client.fetch();

  uint64_t checks = 0, fetches = 0;
  std::future<void> computing = std::async(std::launch::async, compute, std::ref(object));
  for (bool over = false; !over; ++checks) {
    over = computing.wait_for(0s) == std::future_status::ready;
    if (client.read_version() == client.copy.version) continue;  // the copy is good
    client.fetch();
    ++fetches;
    for (const uint64_t value : client.copy.primes)
      if (value != client.copy.primes[0]) throw std::runtime_error("the copy is torn");
    std::cout << "version " << client.copy.version << ": " << client.copy.primes[0] << " primes\n";
  }
  std::cout << checks << " checks of 8 bytes, " << fetches << " fetches of " << sizeof(Object)
            << " bytes\n";
  example::finish_output();
} catch (const std::exception& error) {
  std::cerr << "datagram_read_cache: " << error.what() << '\n';
  return 1;
}
