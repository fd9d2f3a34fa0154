// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/verdict.h"

#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

namespace fault = rdmap::fault;

Counter counter_of(ddp::RegionFault found) {
  switch (found) {
    case ddp::RegionFault::access:
      return Counter::drop_access;
    case ddp::RegionFault::wrap:
    case ddp::RegionFault::bounds:
      return Counter::drop_bounds;
    default:
      return Counter::drop_stag;
  }
}

TerminateCode tagged_code(ddp::RegionFault found) {
  switch (found) {
    case ddp::RegionFault::wrong_domain:
    case ddp::RegionFault::wrong_queue_pair:
      return fault::kTaggedNotAssociated;
    case ddp::RegionFault::access:
      return fault::kAccessRights;  // DDP has no code for it
    case ddp::RegionFault::wrap:
      return fault::kTaggedOffsetWrap;
    case ddp::RegionFault::bounds:
      return fault::kTaggedBaseOrBounds;
    default:
      return fault::kTaggedInvalidStag;
  }
}

TerminateCode read_code(ddp::RegionFault found) {
  switch (found) {
    case ddp::RegionFault::wrong_domain:
    case ddp::RegionFault::wrong_queue_pair:
      return fault::kStagNotAssociated;
    case ddp::RegionFault::access:
      return fault::kAccessRights;
    case ddp::RegionFault::wrap:
      return fault::kOffsetWrap;
    case ddp::RegionFault::bounds:
      return fault::kBaseOrBounds;
    default:
      return fault::kInvalidStag;
  }
}

}  // namespace

Verdict tagged_verdict(ddp::RegionFault found) {
  if (found == ddp::RegionFault::none) return Verdict::accepted();
  return {.drop = counter_of(found), .fault = tagged_code(found)};
}

Verdict read_verdict(ddp::RegionFault found) {
  if (found == ddp::RegionFault::none) return Verdict::accepted();
  return {.drop = counter_of(found), .fault = read_code(found)};
}

TerminateCode concealed_fault(rdmap::Opcode opcode) {
  const bool tagged = rdmap::info_of(opcode).tagged;
  return tagged ? tagged_code(ddp::RegionFault::unknown_stag)
                : read_code(ddp::RegionFault::unknown_stag);
}

}  // namespace diwarp::rnic
