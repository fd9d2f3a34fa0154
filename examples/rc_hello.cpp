// SPDX-License-Identifier: Apache-2.0
// Messages over a reliable connection (RC): a server listens, a client connects, asks, and gets an
// answer. Private data go with the request for the connection and with its acceptance. Receives are
// posted before the peer can send, and disconnect() ends the connection when all has arrived.
#include <diwarp/verbs.h>

#include <cstdio>
#include <functional>
#include <future>

#include "common.h"

using example::check, example::next;

/// A queue pair that has posted a receive.
struct Party : example::End {
  Party() : End(diwarp::QpType::rc) { check(qp.post_recv({.sges = in.sge()})); }

  /// Completions come in any order between sends and receives: looks for the receive's.
  std::string wait_for_message() {
    while (true) {
      const diwarp::WorkCompletion wc = next(cq);
      if (wc.opcode == diwarp::WcOpcode::recv) return {inbox, wc.byte_count};
    }
  }

  char inbox[64] = "";
  diwarp::MemoryRegion in{pd, inbox, sizeof inbox};
};

void serve(Party& server, diwarp::Listener& listener) {
  diwarp::ConnectionRequest request = example::next_request(listener);
  std::printf("server: \"%s\" asks for a connection\n",
              example::text_of(request.private_data()).c_str());
  request.accept(server.qp, {.private_data = example::bytes_of("bob")});
  std::printf("server: got \"%s\"\n", server.wait_for_message().c_str());
  example::send_text(server, "well, thank you");
  server.qp.wait_disconnected(example::kPatience);
}

int main(int argc, char**) try {
  example::take_no_arguments(argc);
  Party server, client;
  diwarp::Listener listener(server.device, 0);  // on a free port
  std::future<void> serving =
      std::async(std::launch::async, serve, std::ref(server), std::ref(listener));

  const auto reply =
      client.qp.connect(listener.address(), {.private_data = example::bytes_of("alice")});
  example::send_text(client, "hello, how are you?");
  const std::string answer = client.wait_for_message();
  std::printf("client: \"%s\" answers \"%s\"\n", example::text_of(reply).c_str(), answer.c_str());
  client.qp.disconnect();
  serving.get();
  example::finish_output();
} catch (const std::exception& error) {
  std::fprintf(stderr, "rc_hello: %s\n", error.what());
  return 1;
}
