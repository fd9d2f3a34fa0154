// SPDX-License-Identifier: Apache-2.0
// A program for librpma: rpma_traffic server|client ADDRESS PORT. The client Writes into the server's
// memory, flushes, and Reads back what it wrote; both check every byte. Status 0: all is as written.
#include <librpma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 100000 };

static void need(int result, const char *what) {
  if (result == 0) return;
  fprintf(stderr, "rpma_traffic: %s: %s\n", what, rpma_err_2str(result));
  exit(1);
}

static void need_true(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "rpma_traffic: %s\n", what);
  exit(1);
}

static unsigned char expected(size_t offset) { return (unsigned char)(offset * 7 + (offset >> 8)); }

static void check(const unsigned char *bytes, const char *what) {
  for (size_t i = 0; i < SIZE; ++i) need_true(bytes[i] == expected(i), what);
}

static struct rpma_peer *make_peer(const char *address, enum rpma_util_ibv_context_type where) {
  struct ibv_context *device = NULL;
  struct rpma_peer *peer = NULL;
  need(rpma_utils_get_ibv_context(address, where, &device), "no device");
  need(rpma_peer_new(device, &peer), "no peer");
  return peer;
}

static void expect(struct rpma_conn *connection, enum rpma_conn_event wanted) {
  enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
  need(rpma_conn_next_event(connection, &event), "no event");
  need_true(event == wanted, rpma_utils_conn_event_2str(event));
}

static void end(struct rpma_conn **connection, struct rpma_mr_local **memory,
                struct rpma_peer **peer) {
  need(rpma_conn_delete(connection), "the connection stays");
  need(rpma_mr_dereg(memory), "the memory stays");
  need(rpma_peer_delete(peer), "the peer stays");
}

static void serve(const char *address, const char *port) {
  struct rpma_peer *peer = make_peer(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
  struct rpma_ep *listener = NULL;
  struct rpma_conn_req *request = NULL;
  struct rpma_conn *connection = NULL;
  struct rpma_mr_local *memory = NULL;
  static unsigned char bytes[SIZE];
  unsigned char descriptor[255];
  size_t length = 0;
  need(rpma_mr_reg(peer, bytes, SIZE,
                   RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
                       RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
                   &memory),
       "no memory");
  need(rpma_mr_get_descriptor_size(memory, &length), "no size");
  need_true(length <= sizeof descriptor, "the descriptor is too long");
  need(rpma_mr_get_descriptor(memory, descriptor), "no descriptor");
  need(rpma_ep_listen(peer, address, port, &listener), "it does not listen");
  need(rpma_ep_next_conn_req(listener, NULL, &request), "no request");
  const struct rpma_conn_private_data data = {.ptr = descriptor, .len = (uint8_t)length};
  need(rpma_conn_req_connect(&request, &data, &connection), "no connection");
  expect(connection, RPMA_CONN_ESTABLISHED);
  expect(connection, RPMA_CONN_CLOSED);
  check(bytes, "other bytes were written");
  need(rpma_ep_shutdown(&listener), "it listens on");
  end(&connection, &memory, &peer);
}

static void await(struct rpma_conn *connection, enum ibv_wc_opcode opcode) {
  struct rpma_cq *completions = NULL;
  struct ibv_wc completion;
  need(rpma_conn_get_cq(connection, &completions), "no completion queue");
  int result = rpma_cq_get_wc(completions, 1, &completion, NULL);
  while (result == RPMA_E_NO_COMPLETION) {
    need(rpma_cq_wait(completions), "no wait");
    result = rpma_cq_get_wc(completions, 1, &completion, NULL);
  }
  need(result, "no completion");
  need_true(completion.status == IBV_WC_SUCCESS, ibv_wc_status_str(completion.status));
  need_true(completion.opcode == opcode, "another completion");
}

static void connect_and_write(const char *address, const char *port) {
  struct rpma_peer *peer = make_peer(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
  struct rpma_conn_req *request = NULL;
  struct rpma_conn *connection = NULL;
  struct rpma_conn_private_data data = {0};
  struct rpma_mr_local *memory = NULL;
  struct rpma_mr_remote *remote = NULL;
  static unsigned char bytes[2 * SIZE];
  for (size_t i = 0; i < SIZE; ++i) bytes[i] = expected(i);
  need(rpma_mr_reg(peer, bytes, sizeof bytes, RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST,
                   &memory),
       "no memory");
  need(rpma_conn_req_new(peer, address, port, NULL, &request), "no request");
  need(rpma_conn_req_connect(&request, NULL, &connection), "no connection");
  expect(connection, RPMA_CONN_ESTABLISHED);
  need(rpma_conn_get_private_data(connection, &data), "no private data");
  need(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote), "no remote memory");
  need(rpma_write(connection, remote, 0, memory, 0, SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL),
       "no Write");
  need(rpma_flush(connection, remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
                  RPMA_F_COMPLETION_ALWAYS, NULL),
       "no flush");
  await(connection, IBV_WC_RDMA_READ);  // which is what a flush is
  need(rpma_read(connection, memory, SIZE, remote, 0, SIZE, RPMA_F_COMPLETION_ALWAYS, NULL),
       "no Read");
  await(connection, IBV_WC_RDMA_READ);
  check(bytes + SIZE, "other bytes were read");
  need(rpma_mr_remote_delete(&remote), "the remote memory stays");
  need(rpma_conn_disconnect(connection), "it stays connected");
  expect(connection, RPMA_CONN_CLOSED);
  end(&connection, &memory, &peer);
}

int main(int argc, char **argv) {
  need_true(argc == 4, "server|client ADDRESS PORT");
  if (strcmp(argv[1], "server") == 0)
    serve(argv[2], argv[3]);
  else
    connect_and_write(argv[2], argv[3]);
  return 0;
}
