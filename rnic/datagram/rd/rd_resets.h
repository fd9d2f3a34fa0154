// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/counters.h"
#include "base/ring.h"
#include "dgram/rd_header.h"
#include "llp/datagram_link.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/rd/rd_burst_plan.h"

namespace diwarp::rnic {

/// Resets that wait to be sent: each answers a datagram of an association that is not there. At
/// most kMaxResets wait. RdTransmit owns it. With the baton.
class RdResets {
 public:
  static constexpr size_t kMaxResets = 64;

  explicit RdResets(Counters& counters) : counters_(counters) {}

  bool empty() const { return !resets_ || resets_->empty(); }
  /// Left out when too many wait.
  void post(const llp::Destination& to, const dgram::RdHeader& header);
  /// Adds those that wait, as datagrams of `source`, while `builder` is open.
  void fill(DatagramBuilder& builder, RdBurstPlan& plan, DatagramSource& source) const;
  /// The first of these was sent, or never will be.
  void remove_first() { resets_->pop_front(); }
  void clear() {
    if (resets_) resets_->clear();
  }

 private:
  struct Reset {
    llp::Destination to;
    dgram::RdHeader header;
  };

  Counters& counters_;
  std::unique_ptr<Ring<Reset>> resets_;  // made when first needed
};

}  // namespace diwarp::rnic
