// SPDX-License-Identifier: Apache-2.0
// UD queue pairs: their states, requests and completions.
#include <endian.h>

#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/verbs/groups.h"
#include "compat/verbs/last_sources.h"
#include "compat/verbs/ud_requests.h"
#include "compat/verbs/ud_states.h"
#include "compat/verbs/work_completions.h"
#include "support/catch.h"

using namespace diwarp::compat;
using diwarp::Address;
using diwarp::SendFlags;
using diwarp::SendWorkRequest;
using diwarp::WcOpcode;
using diwarp::WorkCompletion;

namespace {

constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

int error_of(ibv_qp_state from, ibv_qp_state to, int mask) {
  return errno_value([&] { check_ud_transition(from, to, mask); });
}

ibv_send_wr send_with_key(uint32_t q_key) {
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.wr.ud.remote_qkey = q_key;
  return request;
}

}  // namespace

TEST_CASE("A UD queue pair goes from reset to RTS with the attributes that each step needs") {
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, kInit) == 0);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE) == 0);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_QKEY) == 0);
  CHECK(error_of(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_QKEY) == 0);
  for (const auto from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    CHECK(error_of(from, IBV_QPS_RESET, IBV_QP_STATE) == 0);
    CHECK(error_of(from, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0);
  }
}

TEST_CASE("A step that lacks an attribute, has one too many, or leaves a state out is refused") {
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, kInit & ~IBV_QP_QKEY) == EINVAL);
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, kInit | IBV_QP_ACCESS_FLAGS) == EINVAL);
  CHECK(error_of(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE) == EINVAL);
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_RTR, IBV_QP_STATE) == EINVAL);
  CHECK(error_of(IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_STATE | IBV_QP_SQ_PSN) == EINVAL);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE | IBV_QP_AV) == EINVAL);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_QKEY) == EINVAL);
}

TEST_CASE("The number of a UD queue pair is its port, and a group has one port for all") {
  const Address peer = Address::parse("192.0.2.7");
  CHECK(ud_destination(peer, 4711) == Address::parse("192.0.2.7:4711"));
  CHECK(errno_value([&] { ud_destination(peer, 0); }) == EINVAL);
  CHECK(errno_value([&] { ud_destination(peer, 0x10000); }) == EINVAL);
  const Address group = Address::parse("239.1.1.1");
  CHECK(ud_destination(group, kGroupNumber) == group.with_port(kGroupPort));
}

TEST_CASE("A Q_Key with the high bit stands for the queue pair's own") {
  CHECK(translate_ud(send_with_key(7), {}, {}, 9).q_key == 7);
  CHECK(translate_ud(send_with_key(kOwnQKey), {}, {}, 9).q_key == 9);
  CHECK(translate_ud(send_with_key(0xffffffff), {}, {}, 9).q_key == 9);
}

TEST_CASE("UD has Sends, with and without immediate data, and no Reads and atomics") {
  ibv_send_wr request = send_with_key(0);
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
  CHECK_FALSE(translate_ud(request, {}, {}, 0).immediate);
  CHECK(translate_ud(request, {}, {}, 0).flags == SendFlags::signaled);
  request.opcode = IBV_WR_SEND_WITH_IMM;
  request.imm_data = htobe32(0x01020304);
  CHECK(translate_ud(request, {}, {}, 0).immediate == 0x01020304);
  for (const auto opcode :
       {IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_ATOMIC_CMP_AND_SWP}) {
    request.opcode = opcode;
    CHECK(errno_value([&] { translate_ud(request, {}, {}, 0); }) == EINVAL);
    CHECK(errno_value([&] { names_destination(opcode); }) == EINVAL);
  }
}

TEST_CASE("A Write of a UD queue pair names no destination, and is a Write-Record") {
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.wr.rdma.rkey = 0x1234;
  request.wr.rdma.remote_addr = 0x7f0000001000;
  CHECK_FALSE(names_destination(request.opcode));
  CHECK(names_destination(IBV_WR_SEND));
  const SendWorkRequest made = translate_ud(request, {}, Address::parse("192.0.2.7:4711"), 9);
  CHECK(made.opcode == diwarp::WrOpcode::write_record);
  CHECK(made.remote.stag == 0x1234);
  CHECK(made.remote.offset == 0x7f0000001000);
}

TEST_CASE("The source of a queue pair's latest message is known, of each by itself") {
  LastSources sources;
  CHECK_FALSE(sources.find(1));
  sources.note(1, Address::parse("192.0.2.7:1"));
  sources.note(2, Address::parse("192.0.2.7:2"));
  sources.note(1, Address::parse("192.0.2.7:3"));
  CHECK(sources.find(1) == Address::parse("192.0.2.7:3"));
  CHECK(sources.find(2) == Address::parse("192.0.2.7:2"));
}

TEST_CASE("A completion over datagrams names the sender's queue pair and its immediate data") {
  ibv_wc told{};
  WorkCompletion completion;
  completion.opcode = WcOpcode::recv;
  completion.byte_count = 140;
  completion.source = Address::parse("192.0.2.7:4711");
  translate(completion, told);
  CHECK(told.src_qp == 4711);
  CHECK(told.byte_len == 140);
  CHECK(told.wc_flags == IBV_WC_GRH);
  completion.has_immediate = true;
  completion.immediate = 0x01020304;
  translate(completion, told);
  CHECK(told.wc_flags == (IBV_WC_GRH | IBV_WC_WITH_IMM));
  CHECK(be32toh(told.imm_data) == 0x01020304);
}
