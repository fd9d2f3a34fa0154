// SPDX-License-Identifier: Apache-2.0
// Frames go into a viewer's memory over a network that loses datagrams, by Write-Record: the viewer
// posts no receive and is told which bytes are valid. It takes the others from the frame before.
// The argument is the share of datagrams that get lost, in percent (default: 2).
#include <arpa/inet.h>
#include <diwarp/verbs.h>
#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <vector>

#include "common.h"

using namespace std::chrono_literals;
constexpr uint64_t kFrames = 30, kWidth = 320, kPixels = kWidth * 200;
using Frame = std::vector<std::byte>;

/// The network: a UDP socket on loopback whose filter (classic BPF) drops datagrams at random.
int lossy_socket(uint64_t percent) {
  const auto limit = static_cast<uint32_t>((percent << 32) / 100);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_RANDOM)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, limit, 1, 0), BPF_STMT(BPF_RET | BPF_K, 0),  // drops it
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),  // keeps all of it
  };
  const sock_fprog program{.len = std::size(code), .filter = code};
  sockaddr_storage where{};
  const socklen_t length = diwarp::Address::parse("127.0.0.1").to_sockaddr(where);
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&where), length) != 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    throw std::system_error(errno, std::generic_category(), "No socket that loses datagrams");
  return fd;
}

/// A picture that drifts.
void draw(Frame& frame, uint64_t time) {
  for (size_t i = 0; i < frame.size(); ++i)
    frame[i] = static_cast<std::byte>((i % kWidth + i / kWidth + time) / 3);
}

/// The report about a frame; nothing if none of its datagrams came.
std::optional<diwarp::WorkCompletion> report_of(uint64_t frame, diwarp::CompletionQueue& cq) {
  auto wc = cq.wait(1s);
  while (wc && wc->immediate != frame) wc = cq.wait(1s);
  return wc;
}

int main(int argc, char** argv) try {
  if (argc > 2) throw std::invalid_argument("usage: write_record_stream [PERCENT]");
  const uint64_t loss = argc > 1 ? example::number(argv[1], 90) : 2;
  // Datagrams as on Ethernet, and each by itself: the kernel would filter whole trains of them.
  const diwarp::DeviceOptions device{.udp_segmentation = false, .udp_coalescing = false};
  example::End camera(diwarp::QpType::ud, {.segment = 1472}, device);
  example::End viewer(diwarp::QpType::ud,
                      {.descriptor = lossy_socket(loss), .record_timeout = 20ms}, device);

  Frame frame(kPixels);
  std::array<Frame, 2> screens{Frame(kPixels), Frame(kPixels)};  // the shown one, the next one
  const auto access = diwarp::Access::local_write | diwarp::Access::remote_write;
  const diwarp::MemoryRegion source(camera.pd, frame);
  const diwarp::MemoryRegion targets[] = {{viewer.pd, screens[0], access},
                                          {viewer.pd, screens[1], access}};
  uint64_t valid = 0, gaps = 0;
  for (uint64_t time = 0; time < kFrames; ++time) {
    const diwarp::MemoryRegion& target = targets[time % 2];
    Frame &screen = screens[time % 2], &before = screens[(time + 1) % 2];
    draw(frame, time);
    example::check(camera.qp.post_write_record({.sges = source.sge(),
                                                .destination = viewer.qp.address(),
                                                .remote = {target.rkey(), target.base()},
                                                .immediate = time}));
    example::next(camera.cq);
    const auto wc = report_of(time, viewer.cq);
    const diwarp::ValidityMap map = wc ? wc->validity : diwarp::ValidityMap(kPixels, {});
    for (const auto [offset, length] : map.ranges())
      if (std::memcmp(&screen[offset], &frame[offset], length) != 0)
        throw std::runtime_error("bytes that are said to be valid are not the camera's");
    for (const auto [offset, length] : map.gaps()) {  // conceal: the picture before is alike
      std::memcpy(&screen[offset], &before[offset], length);
      ++gaps;
    }
    valid += map.valid_bytes();
    std::cout << "frame " << time << ": " << map.valid_bytes() << " of " << kPixels
              << " bytes came\n";
  }
  std::cout << 100 * valid / (kFrames * kPixels) << " % of all bytes came; " << gaps
            << " gaps were concealed\n";
  example::finish_output();
} catch (const std::exception& error) {
  std::cerr << "write_record_stream: " << error.what() << '\n';
  return 1;
}
