// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/verdict.h"

#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

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

}  // namespace

Verdict tagged_verdict(ddp::RegionFault found) {
  if (found == ddp::RegionFault::none) return Verdict::accepted();
  return {.drop = counter_of(found), .fault = rdmap::tagged_fault(found)};
}

Verdict read_verdict(ddp::RegionFault found) {
  if (found == ddp::RegionFault::none) return Verdict::accepted();
  return {.drop = counter_of(found), .fault = rdmap::remote_protection_fault(found)};
}

TerminateCode concealed_fault(rdmap::Opcode opcode) {
  const bool tagged = rdmap::info_of(opcode).tagged;
  return tagged ? rdmap::tagged_fault(ddp::RegionFault::unknown_stag)
                : rdmap::remote_protection_fault(ddp::RegionFault::unknown_stag);
}

}  // namespace diwarp::rnic
