// SPDX-License-Identifier: Apache-2.0
// Several load balancers want to reconfigure one node. Each compares and swaps the word that names
// the node's owner, over RC, in the coordinator's memory: if it was 0, the balancer's number stands
// there now; else the result tells who was first. The coordinator's processor takes no part in it.
#include <diwarp/verbs.h>

#include <cstdio>
#include <future>
#include <list>
#include <vector>

#include "common.h"

using diwarp::Access, example::check, example::next;
constexpr uint64_t kBalancers = 5;

/// What the word was before.
uint64_t compete(uint64_t number, diwarp::Address coordinator) {
  example::End balancer(diwarp::QpType::rc);
  uint64_t before = number;
  diwarp::MemoryRegion result(balancer.pd, &before, sizeof before);
  check(balancer.qp.post_recv({}));
  const auto owner = example::advertised(balancer.qp.connect(coordinator));
  next(balancer.cq);  // the empty message that starts the competition
  check(balancer.qp.post_send({.sges = result.sge(),
                               .opcode = diwarp::WrOpcode::compare_swap,
                               .remote = owner,
                               .atomic = {.operand = number, .compare = 0}}));
  next(balancer.cq);
  balancer.qp.disconnect();
  return before;
}

int main(int argc, char**) try {
  example::take_no_arguments(argc);
  const diwarp::Device device = diwarp::Device::open("127.0.0.1");
  const diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 64);
  alignas(8) uint64_t owner = 0;
  diwarp::MemoryRegion word(pd, &owner, sizeof owner, Access::local_write | Access::remote_atomic);
  diwarp::Listener listener(device, 0);

  std::vector<std::future<uint64_t>> results;
  for (uint64_t number = 1; number <= kBalancers; ++number)
    results.push_back(std::async(std::launch::async, compete, number, listener.address()));
  std::list<diwarp::QueuePair> peers;
  while (peers.size() < kBalancers) {
    peers.emplace_back(pd, diwarp::QueuePairInit{.send_cq = cq, .recv_cq = cq});
    example::next_request(listener).accept(
        peers.back(), {.private_data = example::bytes_of(example::advertise(word))});
  }
  for (diwarp::QueuePair& peer : peers) check(peer.post_send({}));

  uint64_t winners = 0;
  for (uint64_t number = 1; number <= kBalancers; ++number) {
    const uint64_t before = results[number - 1].get();
    winners += before == 0 ? 1 : 0;
    if (before == 0)
      std::printf("balancer %d reconfigures the node\n", static_cast<int>(number));
    else
      std::printf("balancer %d: balancer %d was first\n", static_cast<int>(number),
                  static_cast<int>(before));
  }
  if (winners != 1) throw std::runtime_error("there must be one winner");
  example::finish_output();
} catch (const std::exception& error) {
  std::fprintf(stderr, "reconfigure: %s\n", error.what());
  return 1;
}
