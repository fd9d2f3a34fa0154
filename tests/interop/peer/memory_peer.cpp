// SPDX-License-Identifier: Apache-2.0
// Registers memory that a device may not be able to pin, and then some that it can, whose UD queue
// pair works. Reports one JSON line; exit status 0 if the second part went well.
#include <diwarp/verbs.h>

#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace diwarp;

enum class Kind { plain, read_only, unmapped };

const std::map<std::string, Kind> kKinds = {
    {"plain", Kind::plain}, {"read_only", Kind::read_only}, {"unmapped", Kind::unmapped}};

/// Pages of this kind, until the process ends.
std::span<std::byte> pages(Kind kind, size_t length) {
  const int rights = kind == Kind::read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  void* const memory = ::mmap(nullptr, length, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("there is no memory to register");
  if (kind == Kind::unmapped) ::munmap(memory, length);
  return {static_cast<std::byte*>(memory), length};
}

/// What the device says to it; empty where it registers the memory.
std::string refusal(const ProtectionDomain& pd, std::span<std::byte> memory) {
  try {
    const MemoryRegion region(pd, memory, Access::local_write);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

/// A datagram to the queue pair that sends it, within 4 KiB of memory.
void check_device_works(const Device& device, const ProtectionDomain& pd) {
  std::vector<std::byte> memory(4096);
  const MemoryRegion region(pd, memory, Access::local_write);
  CompletionQueue cq(device, 8);
  QueuePair qp(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq});
  if (qp.post_recv({.sges = region.sge(0, 100)}) ||
      qp.post_send({.sges = region.sge(200, 100), .destination = qp.address()}))
    throw std::runtime_error("a request was refused");
  for (int i = 0; i < 2; ++i) {
    const auto completion = cq.wait(std::chrono::seconds(60));
    if (!completion || completion->status != WcStatus::success)
      throw std::runtime_error("a datagram did not pass");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  Kind kind = Kind::plain;
  size_t length = 4096;
  CLI::App app("Memory that a device may refuse");
  app.add_option("--device", name, "its name")->required();
  app.add_option("--memory", kind, "of this kind")->transform(CLI::CheckedTransformer(kKinds));
  app.add_option("--length", length, "bytes");
  CLI11_PARSE(app, argc, argv);
  try {
    const Device device = Device::open(name);
    const ProtectionDomain pd(device);
    const std::string refused = refusal(pd, pages(kind, length));
    check_device_works(device, pd);
    std::printf("{\"ok\": true, \"refusal\": \"%s\"}\n", refused.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::printf("{\"ok\": false, \"error\": \"%s\"}\n", error.what());
    return 1;
  }
}
