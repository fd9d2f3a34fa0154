// SPDX-License-Identifier: Apache-2.0
// A message over datagrams (UD): two queue pairs, no connection. The receiver posts a buffer, and
// the sender names its destination in the request. A datagram that is lost is not repeated, so one
// who waits for it does so with a timeout.
#include <diwarp/verbs.h>

#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>

int main(int argc, char**) try {
  using namespace std::chrono_literals;
  if (argc > 1) throw std::invalid_argument("it takes no arguments");
  diwarp::Device device = diwarp::Device::open("127.0.0.1");
  diwarp::ProtectionDomain pd(device);
  diwarp::CompletionQueue cq(device, 16);
  diwarp::QueuePair alice(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});
  diwarp::QueuePair bob(pd, {.type = diwarp::QpType::ud, .send_cq = cq, .recv_cq = cq});

  char text[64] = "hello over datagrams", inbox[64] = "";
  diwarp::MemoryRegion out(pd, text, sizeof text), in(pd, inbox, sizeof inbox);
  const diwarp::Sge message = out.sge(0, std::strlen(text));

  if (const auto error = bob.post_recv({.wr_id = 1, .sges = in.sge()}))
    throw std::system_error(error);
  if (const auto error =
          alice.post_send({.wr_id = 2, .sges = message, .destination = bob.address()}))
    throw std::system_error(error);
  for (int done = 0; done < 2; ++done) {
    const auto wc = cq.wait(5s);
    if (!wc) throw std::runtime_error("nothing came: is the interface lo up?");
    if (wc->status != diwarp::WcStatus::success)
      throw std::runtime_error("a request failed: " + std::string(to_string(wc->status)));
    if (wc->opcode == diwarp::WcOpcode::recv)
      std::cout << wc->byte_count << " bytes from " << wc->source.to_string() << ": " << inbox
                << '\n';
  }
  if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written");
} catch (const std::exception& error) {
  std::cerr << "ud_hello: " << error.what() << '\n';
  return 1;
}
