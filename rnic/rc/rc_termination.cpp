// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_termination.h"

#include <algorithm>

namespace diwarp::rnic {

void RcTermination::start() {
  reason_ = RcEnd::none;
  code_.reset();
  held_ = 0;
  length_ = 0;
}

bool RcTermination::end(RcEnd reason, TerminateCode code, ConstBytes ulpdu) {
  reason_ = reason;
  code_ = code;
  held_ = 0;
  append(ulpdu);
  length_ = ulpdu.size();
  return false;
}

bool RcTermination::end_by_peer(const rdmap::Terminate& terminate) {
  end(RcEnd::terminated, terminate.code, terminate.ddp_header);
  append(terminate.rdmap_header);
  return false;
}

/// As far as there is room.
void RcTermination::append(ConstBytes headers) {
  const size_t count = std::min(headers.size(), offending_.size() - held_);
  std::copy_n(headers.begin(), count, offending_.begin() + held_);
  held_ = static_cast<uint8_t>(held_ + count);
}

}  // namespace diwarp::rnic
