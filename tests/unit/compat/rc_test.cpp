// SPDX-License-Identifier: Apache-2.0
// RC queue pairs: their states.
#include <cerrno>
#include <chrono>

#include "compat/common/boundary.h"
#include "compat/verbs/rc_states.h"
#include "support/catch.h"

using namespace diwarp::compat;

namespace {

constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT |
                     IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
/// What rdma_init_qp_attr() gives for iWARP.
constexpr int kByManager = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;

int error_of(ibv_qp_state from, ibv_qp_state to, int mask, bool named = false) {
  return errno_value([&] { check_rc_transition(from, to, mask, named); });
}

}  // namespace

TEST_CASE("An RC queue pair goes from reset to RTS with the attributes that InfiniBand asks for") {
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, kInit) == 0);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTR, kRtr) == 0);
  CHECK(error_of(IBV_QPS_RTR, IBV_QPS_RTS, kRts, true) == 0);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_STATE, true) == 0);
  for (const auto from : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR}) {
    CHECK(error_of(from, IBV_QPS_RESET, IBV_QP_STATE) == 0);
    CHECK(error_of(from, IBV_QPS_ERR, IBV_QP_STATE | IBV_QP_CUR_STATE) == 0);
  }
}

TEST_CASE("Each attribute that a step of an RC queue pair needs is missed") {
  struct Step {
    ibv_qp_state from;
    ibv_qp_state to;
    int mask;
    bool named;
  };
  for (const Step& step :
       {Step{IBV_QPS_RESET, IBV_QPS_INIT, kInit, false},
        Step{IBV_QPS_INIT, IBV_QPS_RTR, kRtr, false}, Step{IBV_QPS_RTR, IBV_QPS_RTS, kRts, true}})
    for (int bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
      if ((step.mask & bit) == 0) continue;
      INFO("attribute " << bit << " of a step to state " << step.to);
      CHECK(error_of(step.from, step.to, step.mask & ~bit, step.named) == EINVAL);
    }
}

TEST_CASE("An attribute too many, and a state that is left out, are refused for RC") {
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, kInit | IBV_QP_AV) == EINVAL);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTR, kRtr | IBV_QP_SQ_PSN) == EINVAL);
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_RTR, kRtr) == EINVAL);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTS, kRts) == EINVAL);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_RESET, kInit) == EINVAL);
  CHECK(error_of(IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_STATE, true) == EINVAL);
}

TEST_CASE("A queue pair of the connection manager's needs no attributes, but rights for init") {
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, kByManager) == 0);
  CHECK(error_of(IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_STATE) == EINVAL);
  CHECK(error_of(IBV_QPS_INIT, IBV_QPS_RTR, kByManager) == 0);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_RTS, kRts) == 0);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_RTS, kRts, true) == EINVAL);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_INIT, kInit) == 0);
  CHECK(error_of(IBV_QPS_RTS, IBV_QPS_INIT, kInit, true) == EINVAL);
}

TEST_CASE("A named peer has 10 s to come, or what the timeout and the retry count make") {
  using namespace std::chrono_literals;
  const auto patience = [](uint8_t timeout, uint8_t retries) {
    ibv_qp_attr attributes{};
    attributes.timeout = timeout;
    attributes.retry_cnt = retries;
    return peer_patience(attributes);
  };
  CHECK(patience(1, 0) == 10s);
  CHECK(patience(14, 7) == 10s);                   // 0.5 s
  CHECK(patience(20, 7) == 8 * 1048576 * 4096ns);  // 34 s
  CHECK(patience(31, 7) > 8h);
  CHECK(patience(0, 0) == diwarp::Duration::max());
}
