// SPDX-License-Identifier: Apache-2.0
#include <diwarp/error.h>

#include <cerrno>

#include "compat/cm/depths.h"
#include "compat/cm/event_facts.h"
#include "compat/common/addresses.h"
#include "compat/common/error.h"
#include "compat/verbs/work_completions.h"
#include "support/catch.h"

using namespace diwarp::compat;
using diwarp::CmEventInfo;
using diwarp::CmEventType;
using diwarp::Errc;
using diwarp::WcOpcode;
using diwarp::WorkCompletion;

TEST_CASE("Every error of the library has an errno value") {
  for (int value = 1; value <= static_cast<int>(Errc::loopback_device); ++value)
    CHECK(errno_of(make_error_code(static_cast<Errc>(value))) > 0);
  CHECK(errno_of(make_error_code(Errc::queue_full)) == ENOMEM);
  CHECK(errno_of(std::make_error_code(std::errc::permission_denied)) == EACCES);
}

TEST_CASE("Only addresses of this host's interfaces, and loopback's, are of this host") {
  for (const diwarp::Address& own : host_addresses()) CHECK(is_of_this_host(own.with_port(7174)));
  CHECK(is_of_this_host(diwarp::Address::parse("127.8.9.10:1")));
  CHECK(is_of_this_host(diwarp::Address::parse("[::1]:1")));
  CHECK_FALSE(is_of_this_host(diwarp::Address::parse("203.0.113.77")));
  CHECK_FALSE(is_of_this_host(diwarp::Address::parse("2001:db8::77")));
}

TEST_CASE("A completion tells what an invalidation took back, and that alone") {
  ibv_wc told{};
  WorkCompletion completion;
  completion.wr_id = 7;
  completion.opcode = WcOpcode::recv;
  completion.byte_count = 5;
  translate(completion, told);
  CHECK(told.wr_id == 7);
  CHECK(told.status == IBV_WC_SUCCESS);
  CHECK((told.opcode & IBV_WC_RECV) != 0);
  CHECK(told.byte_len == 5);
  CHECK(told.wc_flags == 0);
  completion.invalidated = true;
  completion.invalidated_stag = 9;
  translate(completion, told);
  CHECK(told.wc_flags == IBV_WC_WITH_INV);
  CHECK(told.invalidated_rkey == 9);
}

TEST_CASE("A request's depths are what the peer has and wants, up to what there is") {
  CmEventInfo info;
  info.type = CmEventType::connect_request;
  info.ord = 3;
  info.ird = 16382;
  const rdma_cm_event event = event_of(info);
  CHECK(event.event == RDMA_CM_EVENT_CONNECT_REQUEST);
  CHECK(event.param.conn.initiator_depth == 3);
  CHECK(event.param.conn.responder_resources == 128);
}

TEST_CASE("An established connection's depths stand under each other's names, as the kernel's do") {
  CmEventInfo info;
  info.type = CmEventType::established;
  info.ord = 3;
  info.ird = 5;
  const rdma_cm_event event = event_of(info);
  CHECK(event.param.conn.initiator_depth == 5);
  CHECK(event.param.conn.responder_resources == 3);
}

TEST_CASE("Failures have the kernel's status") {
  CmEventInfo info;
  info.status = make_error_code(Errc::connection_lost);
  info.type = CmEventType::rejected;
  CHECK(event_of(info).status == -ECONNRESET);
  info.type = CmEventType::unreachable;
  CHECK(event_of(info).status == -ETIMEDOUT);
  info.type = CmEventType::connect_error;
  CHECK(event_of(info).status == -ECONNRESET);
  info.type = CmEventType::disconnected;
  CHECK(event_of(info).status == 0);
}

TEST_CASE("A peer that rejects is told apart from a host where nobody listens") {
  CmEventInfo info;
  info.type = CmEventType::rejected;
  info.status = make_error_code(Errc::rejected);
  CHECK(event_of(info).event == RDMA_CM_EVENT_REJECTED);
  CHECK(event_of(info).status == -ECONNRESET);
  info.status = std::make_error_code(std::errc::connection_refused);
  CHECK(event_of(info).event == RDMA_CM_EVENT_REJECTED);
  CHECK(event_of(info).status == -ECONNREFUSED);
}

TEST_CASE(
    "Depths are those that were asked for, the others' where all were, and no more than 128") {
  rdma_conn_param parameters{};
  parameters.initiator_depth = 4;
  parameters.responder_resources = RDMA_MAX_RESP_RES;
  const Depths depths = depths_of(&parameters, {1, 2});
  CHECK(depths.initiator == 4);
  CHECK(depths.responder == 2);
  CHECK(depths_of(nullptr, {1, 2}).initiator == 1);
  parameters.initiator_depth = 129;
  CHECK_THROWS_AS(depths_of(&parameters, {}), Refusal);
}
