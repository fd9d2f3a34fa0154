// SPDX-License-Identifier: Apache-2.0
// One message from one queue pair to another, over UDP.
#include <diwarp/verbs.h>

#include <cstring>
#include <iostream>
#include <string_view>
#include <vector>

int main() {
  diwarp::Device device = diwarp::Device::open("127.0.0.1");
  diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 16);
  diwarp::QueuePair alice(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});
  diwarp::QueuePair bob(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});

  std::vector<std::byte> memory(256);
  diwarp::MemoryRegion region(pd, memory);
  const diwarp::Sge inbox = region.sge(128, 128);
  if (auto error = bob.post_recv({.wr_id = 1, .sges = {&inbox, 1}})) throw std::system_error(error);

  constexpr std::string_view kGreeting = "hello, bob";
  std::memcpy(memory.data(), kGreeting.data(), kGreeting.size());
  const diwarp::Sge outbox = region.sge(0, kGreeting.size());
  if (auto error =
          alice.post_send({.wr_id = 2, .sges = {&outbox, 1}, .destination = bob.address()})) {
    throw std::system_error(error);
  }

  for (int open = 2; open > 0; --open) {
    const diwarp::WorkCompletion wc = cq.wait();
    if (wc.status != diwarp::WcStatus::success) return 1;
    if (wc.opcode != diwarp::WcOpcode::recv) continue;
    std::cout << wc.source.to_string() << " says: "
              << std::string_view(reinterpret_cast<const char*>(&memory[128]), wc.byte_count)
              << "\n";
  }
}
