// SPDX-License-Identifier: Apache-2.0
#include <diwarp/verbs.h>

#include <cstring>
#include <iostream>

int main() {
  using namespace std::chrono_literals;
  diwarp::Device device = diwarp::Device::open("127.0.0.1");
  diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 16);
  diwarp::QueuePair alice(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});
  diwarp::QueuePair bob(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});

  char text[64] = "hello over datagrams", inbox[64] = "";
  diwarp::MemoryRegion out(pd, text, sizeof text), in(pd, inbox, sizeof inbox);
  const diwarp::Sge message = out.sge(0, std::strlen(text));

  if (bob.post_recv({.wr_id = 1, .sges = in.sge()})) return 1;
  if (alice.post_send({.wr_id = 2, .sges = message, .destination = bob.address()})) return 1;
  for (int done = 0; done < 2; ++done) {
    const auto wc = cq.wait(5s);
    if (!wc || wc->status != diwarp::WcStatus::success) {
      std::cerr << (wc ? to_string(wc->status) : "nothing came: is the interface lo up?") << '\n';
      return 1;
    }
    if (wc->opcode == diwarp::WcOpcode::recv)
      std::cout << wc->byte_count << " bytes from " << wc->source.to_string() << ": " << inbox
                << '\n';
  }
}
