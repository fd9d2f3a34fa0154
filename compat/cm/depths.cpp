// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/depths.h"

#include <cerrno>

#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

uint16_t depth_of(uint8_t asked, uint8_t as_many_as_can_be, uint16_t otherwise) {
  if (asked == as_many_as_can_be) return otherwise;
  refuse_if(asked > kMaxDepth, EINVAL);
  return asked;
}

}  // namespace

Depths depths_of(const rdma_conn_param* parameters, const Depths& otherwise) {
  if (parameters == nullptr) return otherwise;
  return {depth_of(parameters->initiator_depth, RDMA_MAX_INIT_DEPTH, otherwise.initiator),
          depth_of(parameters->responder_resources, RDMA_MAX_RESP_RES, otherwise.responder)};
}

}  // namespace diwarp::compat
