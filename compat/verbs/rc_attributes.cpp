// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/rc_attributes.h"

#include <diwarp/types.h>

#include <cerrno>
#include <cstdint>

#include "compat/common/addresses.h"
#include "compat/common/depth_limit.h"
#include "compat/common/error.h"
#include "compat/common/log.h"
#include "compat/verbs/attributes.h"
#include "compat/verbs/meeting_numbers.h"
#include "compat/verbs/memory.h"

namespace diwarp::compat {
namespace {

constexpr int kMigration = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;
constexpr int kKnown = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY |
                       IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_AV |
                       IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN |
                       IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                       IBV_QP_TIMEOUT | kMigration | IBV_QP_CAP | IBV_QP_RATE_LIMIT;

/// An attribute that is a number, with the values that it may have.
struct Range {
  int bit;
  uint8_t ibv_qp_attr::*field;
  uint8_t most;
};
constexpr Range kRanges[] = {
    {IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic, kMaxDepth},
    {IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic, kMaxDepth},
    {IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer, 31},
    {IBV_QP_TIMEOUT, &ibv_qp_attr::timeout, 31},
    {IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt, 7},
    {IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry, 7},
};

bool is_mtu(ibv_mtu mtu) { return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096; }

}  // namespace

void check_rc_attributes(const ibv_qp_attr& attributes, int mask) {
  refuse_if((mask & ~kKnown) != 0, EINVAL);
  for (const Range& range : kRanges)
    refuse_if((mask & range.bit) != 0 && attributes.*range.field > range.most, EINVAL);
  refuse_if((mask & IBV_QP_PORT) != 0 && attributes.port_num != 1, EINVAL);
  refuse_if((mask & IBV_QP_PKEY_INDEX) != 0 && attributes.pkey_index != 0, EINVAL);
  refuse_if((mask & IBV_QP_PATH_MTU) != 0 && !is_mtu(attributes.path_mtu), EINVAL);
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) access_of(attributes.qp_access_flags);
  if ((mask & kMigration) != 0) unsupported("ibv_modify_qp of path migration");
  if ((mask & IBV_QP_CAP) != 0) unsupported("ibv_modify_qp of capacities");
}

NamedPeer named_peer(const ibv_qp_attr& attributes, const Device& device) {
  const ibv_ah_attr& path = attributes.ah_attr;
  refuse_if(path.port_num != 1 || path.dlid != 0, EINVAL);
  const uint32_t number = attributes.dest_qp_num;
  const uint16_t port = MeetingNumbers::port_of(number);
  refuse_if(number < kLeastRcNumber || number > kMaxRcNumber || port == 0, EINVAL);
  const Address source = device.gid_address(path.is_global != 0 ? path.grh.sgid_index : 0);
  const Address peer = path.is_global != 0 ? address_of_gid(path.grh.dgid.raw) : source;
  refuse_if(peer.is_any() || peer.is_multicast(), EINVAL);
  return {.address = peer.with_port(port),
          .number = number,
          .source = source,
          .timeout = Duration::max(),
          .crc = wants_crc(peer),
          .ord = kMaxDepth,
          .ird = attributes.max_dest_rd_atomic};
}

void merge_attributes(ibv_qp_attr& kept, const ibv_qp_attr& given, int mask) {
  const auto copy = [&](int bit, auto field) {
    if ((mask & bit) != 0) kept.*field = given.*field;
  };
  copy(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  copy(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  copy(IBV_QP_PORT, &ibv_qp_attr::port_num);
  copy(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  copy(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  copy(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  copy(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  copy(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  copy(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  copy(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  copy(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  copy(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  copy(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  copy(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
}

}  // namespace diwarp::compat
