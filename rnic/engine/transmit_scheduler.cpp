// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/transmit_scheduler.h"

namespace diwarp::rnic {

void RoundRobin::remove(TransmitSource& source) {
  if (&source == first_again_) first_again_ = line_.next(source);
  line_.remove(source);
}

TransmitSource* RoundRobin::begin_round() {
  first_again_ = nullptr;
  return line_.pop_front();
}

TransmitSource* RoundRobin::next(TransmitSource& served, size_t) {
  if (first_again_ == nullptr && served.is_scheduled()) first_again_ = &served;
  return line_.front() == first_again_ ? nullptr : line_.pop_front();
}

}  // namespace diwarp::rnic
