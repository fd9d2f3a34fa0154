// SPDX-License-Identifier: Apache-2.0
// Registers memory that a device may not be able to pin, and then some that it can, with which a
// reliable connection of the device to itself and a UD queue pair pass a message. Reports one JSON
// line; exit status 0 if the second part went well.
#include <diwarp/verbs.h>

#include <fcntl.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <future>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

using namespace diwarp;

constexpr Duration kPatience = std::chrono::seconds(60);

enum class Kind { plain, read_only, unmapped, device };

const std::map<std::string, Kind> kKinds = {{"plain", Kind::plain},
                                            {"read_only", Kind::read_only},
                                            {"unmapped", Kind::unmapped},
                                            {"device", Kind::device}};

/// Pages of this kind, until the process ends; `file` is a device's.
std::span<std::byte> pages(Kind kind, size_t length, const std::string& file) {
  const int rights = kind == Kind::read_only ? PROT_READ : PROT_READ | PROT_WRITE;
  const bool mapped = kind == Kind::device;
  const int fd = mapped ? ::open(file.c_str(), O_RDWR | O_CLOEXEC) : -1;
  const int flags = mapped ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const memory = ::mmap(nullptr, length, rights, flags, fd, 0);
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

/// Waits for this many completions, which must be good.
void take(CompletionQueue& cq, int count) {
  for (int i = 0; i < count; ++i) {
    const auto completion = cq.wait(kPatience);
    if (!completion || completion->status != WcStatus::success)
      throw std::runtime_error("a message did not pass");
  }
}

void require_posted(std::error_code error) {
  if (error) throw std::system_error(error, "a request was refused");
}

/// A message of a connection, and a datagram, both within 4 KiB of memory.
void check_device_works(const Device& device, const ProtectionDomain& pd) {
  std::vector<std::byte> memory(4096);
  const MemoryRegion region(pd, memory, Access::local_write);
  CompletionQueue cq(device, 8);
  QueuePair near(pd, {.send_cq = cq, .recv_cq = cq});
  QueuePair far(pd, {.send_cq = cq, .recv_cq = cq});
  Listener listener(device, 0);
  require_posted(far.post_recv({.sges = region.sge(0, 100)}));
  auto connecting = std::async(std::launch::async,
                               [&] { near.connect(listener.address(), {.timeout = kPatience}); });
  auto request = listener.get_request(kPatience);
  if (!request) throw std::runtime_error("no request came");
  request->accept(far);
  connecting.get();
  require_posted(near.post_send({.sges = region.sge(200, 100)}));
  take(cq, 2);
  QueuePair datagrams(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq});
  require_posted(datagrams.post_recv({.sges = region.sge(0, 100)}));
  require_posted(
      datagrams.post_send({.sges = region.sge(200, 100), .destination = datagrams.address()}));
  take(cq, 2);
}

}  // namespace

int main(int argc, char** argv) {
  std::string name;
  Kind kind = Kind::plain;
  size_t length = 4096;
  std::string file;
  bool only_map = false;
  CLI::App app("Memory that a device may refuse");
  app.add_option("--device", name, "its name");
  app.add_option("--memory", kind, "of this kind")->transform(CLI::CheckedTransformer(kKinds));
  app.add_option("--length", length, "bytes");
  app.add_option("--file", file, "of the device whose memory it is");
  app.add_flag("--only-map", only_map, "whether that can be mapped is asked");
  CLI11_PARSE(app, argc, argv);
  try {
    if (only_map) {
      pages(Kind::device, length, file);
      return 0;
    }
    const Device device = Device::open(name);
    const ProtectionDomain pd(device);
    const std::string refused = refusal(pd, pages(kind, length, file));
    check_device_works(device, pd);
    std::printf("{\"ok\": true, \"refusal\": \"%s\"}\n", refused.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::printf("{\"ok\": false, \"error\": \"%s\"}\n", error.what());
    return 1;
  }
}
