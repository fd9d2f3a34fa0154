// SPDX-License-Identifier: Apache-2.0
#include <diwarp/verbs.h>

#include <cstdio>
#include <cstring>

int main() {
  diwarp::Device device = diwarp::Device::open("127.0.0.1");
  diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 16);
  diwarp::QueuePair alice(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});
  diwarp::QueuePair bob(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});

  char text[64] = "hello over datagrams", inbox[64] = "";
  diwarp::MemoryRegion out(pd, text, sizeof text), in(pd, inbox, sizeof inbox);
  const diwarp::Sge to_send = out.sge(0, std::strlen(text)), room = in.sge();

  if (bob.post_recv({.wr_id = 1, .sges = {&room, 1}})) return 1;
  if (alice.post_send({.wr_id = 2, .sges = {&to_send, 1}, .destination = bob.address()})) return 1;
  for (int done = 0; done < 2; ++done) {
    const diwarp::WorkCompletion wc = cq.wait();
    if (wc.opcode == diwarp::WcOpcode::recv)
      std::printf("%u bytes from %s: %s\n", wc.byte_count, wc.source.to_string().c_str(), inbox);
  }
}
