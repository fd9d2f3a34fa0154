// SPDX-License-Identifier: Apache-2.0
// A frame goes directly into a viewer's memory, over datagrams: the viewer posts no receive, and is
// told what arrived. Missing ones are blacked out.
#include <diwarp/verbs.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  using namespace std::chrono_literals;
  diwarp::Device device = diwarp::Device::open("127.0.0.1");
  diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 64);
  const diwarp::QueuePairInit init{.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq};
  diwarp::QueuePair camera(pd, init);
  diwarp::QueuePair viewer(pd, init);

  std::vector<std::byte> frame(100'000, std::byte{0xAB}), screen(frame.size());
  diwarp::MemoryRegion source(pd, frame);
  diwarp::MemoryRegion target(pd, screen,
                              diwarp::Access::local_write | diwarp::Access::remote_write);

  // A real program tells its peer the STag and the base in a message of its own.
  if (camera.post_write_record({.wr_id = 7,
                                .sges = {source.sge()},
                                .destination = viewer.address(),
                                .remote = {target.rkey(), target.base()},
                                .immediate = 42}))
    return 1;
  while (const auto wc = cq.wait(5s)) {
    if (wc->status != diwarp::WcStatus::success) {
      std::printf("the record was not sent: %s\n", std::string(to_string(wc->status)).c_str());
      return 1;
    }
    if (wc->opcode != diwarp::WcOpcode::recv_write_record) continue;
    std::printf("frame %llu from %s: %llu of %u bytes are valid\n",
                static_cast<unsigned long long>(wc->immediate), wc->source.to_string().c_str(),
                static_cast<unsigned long long>(wc->valid_bytes), wc->byte_count);
    for (const auto [offset, length] : wc->validity.gaps())
      std::fill_n(screen.begin() + static_cast<ptrdiff_t>(offset), length, std::byte{0});
    return screen == frame ? 0 : 1;
  }
  std::puts("nothing came: is the interface lo up?");
  return 1;
}
