// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_resets.h"

namespace diwarp::rnic {

void RdResets::post(const llp::Destination& to, const dgram::RdHeader& header) {
  if (!resets_) resets_ = try_make_ring<Reset>(kMaxResets);
  const bool posted = resets_ && resets_->push_back({to, header});
  counters_.add(posted ? Counter::rd_resets_sent : Counter::rd_resets_limited);
}

void RdResets::fill(DatagramBuilder& builder, RdBurstPlan& plan, DatagramSource& source) const {
  for (size_t i = 0; i < resets_->size() && builder.open(); ++i) {
    const Reset& reset = (*resets_)[i];
    const size_t header = dgram::encode_rd_header(reset.header, builder.header());
    plan.put(builder.size(), {.act = RdPlanned::Act::reset});
    builder.add(reset.to, {.datagram_class = dgram::DatagramClass::reliable}, header, 0,
                {.source = &source, .value = builder.size()});
  }
}

}  // namespace diwarp::rnic
