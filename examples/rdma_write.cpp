// SPDX-License-Identifier: Apache-2.0
// RDMA Write over RC: the server registers memory that its peer may write, and gives the client the
// STag and the offset as private data. The client writes there, twice, and then sends immediate
// data, which is how the server learns that both Writes are in place: they alone tell it nothing.
#include <diwarp/verbs.h>

#include <cstdio>
#include <functional>
#include <future>

#include "common.h"

using diwarp::Access, example::check, example::next;

void serve(example::End& server, diwarp::Listener& listener) {
  char board[64] = "";
  diwarp::MemoryRegion target(server.pd, board, sizeof board,
                              Access::local_write | Access::remote_write);
  check(server.qp.post_recv({}));  // immediate data take a receive, and no memory of it
  example::next_request(listener).accept(
      server.qp, {.private_data = example::bytes_of(example::advertise(target))});

  const diwarp::WorkCompletion wc = next(server.cq);
  if (wc.opcode != diwarp::WcOpcode::recv_immediate || wc.immediate > sizeof board)
    throw std::runtime_error("the client sent something else than a length");
  std::printf("server: %d bytes were written: \"%.*s\"\n", static_cast<int>(wc.immediate),
              static_cast<int>(wc.immediate), board);
  server.qp.wait_disconnected(example::kPatience);
}

int main(int argc, char**) try {
  example::take_no_arguments(argc);
  example::End server(diwarp::QpType::rc), client(diwarp::QpType::rc);
  diwarp::Listener listener(server.device, 0);
  std::future<void> serving =
      std::async(std::launch::async, serve, std::ref(server), std::ref(listener));

  const diwarp::RemoteMemory board = example::advertised(client.qp.connect(listener.address()));
  char text[] = "written without a receive";
  diwarp::MemoryRegion source(client.pd, text, sizeof text);
  const size_t length = sizeof text - 1, half = length / 2;

  // One list of requests, which are done in order. Only the last one asks for a completion.
  const diwarp::SendWorkRequest requests[] = {
      {.sges = source.sge(0, half),
       .flags = diwarp::SendFlags::none,
       .opcode = diwarp::WrOpcode::rdma_write,
       .remote = board},
      {.sges = source.sge(half, length - half),
       .flags = diwarp::SendFlags::none,
       .opcode = diwarp::WrOpcode::rdma_write,
       .remote = {board.stag, board.offset + half}},
      {.opcode = diwarp::WrOpcode::immediate, .immediate = length},
  };
  size_t posted = 0;
  check(client.qp.post_sends(requests, posted));
  next(client.cq);
  client.qp.disconnect();
  serving.get();
  example::finish_output();
} catch (const std::exception& error) {
  std::fprintf(stderr, "rdma_write: %s\n", error.what());
  return 1;
}
