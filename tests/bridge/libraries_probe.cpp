// SPDX-License-Identifier: Apache-2.0

// Says in a process of its own which of rdma-core's libraries are loaded, or why none is, and that
// software devices work: libraries_test.cpp runs it with different ones.
//
// Usage: probe [CAPABILITY...]. The fake in DIWARP_RDMA_CORE lacks these capabilities.
#include <diwarp/verbs.h>
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "fake_rdma_core/control.h"

namespace {

void deny(const char* capability) {
  const std::string file = std::string(std::getenv("DIWARP_RDMA_CORE")) + "/libibverbs.so.1";
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  reinterpret_cast<decltype(&fake_deny)>(::dlsym(library, "fake_deny"))(capability, 1);
}

void tell_libraries() {
  const diwarp::HardwareLibraries found = diwarp::Device::hardware_libraries();
  std::cout << "verbs: " << found.verbs << "\ncm: " << found.cm << "\nrefusal: " << found.refusal
            << '\n';
}

void tell_opening() {
  try {
    diwarp::Device::open("hw:fake0");
    std::cout << "opened\n";
  } catch (const diwarp::Error& error) {
    std::cout << "not opened: " << error.what() << '\n';
  }
}

/// A datagram from a software device to itself.
bool software_works() {
  const diwarp::Device device =
      diwarp::Device::open("127.0.0.1", {.hardware = diwarp::Hardware::prefer});
  const diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 16);
  diwarp::QueuePair qp(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});
  std::array<std::byte, 16> memory{};
  const diwarp::MemoryRegion mr(pd, memory);
  if (qp.post_recv({.sges = mr.sge(8, 8)})) return false;
  if (qp.post_send({.sges = mr.sge(0, 8), .destination = qp.address()})) return false;
  for (int i = 0; i < 2; ++i) {
    const auto done = cq.wait(std::chrono::seconds(30));
    if (!done || done->status != diwarp::WcStatus::success) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char* argv[]) {
  for (int i = 1; i < argc; ++i) deny(argv[i]);
  tell_libraries();
  tell_opening();
  if (software_works()) std::cout << "software works\n";
}
