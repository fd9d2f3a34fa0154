// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/transmit_scheduler.h"

namespace diwarp::rnic {

void RoundRobin::remove(TransmitSource& source) {
  if (&source == first_again_) first_again_ = line_.next(source);
  line_.remove(source);
}

TransmitSource* RoundRobin::next() {
  TransmitSource* const source = line_.front();
  if (source == nullptr || source == first_again_) return nullptr;
  line_.remove(*source);
  return source;
}

void RoundRobin::served(TransmitSource& source, size_t) {
  if (first_again_ == nullptr && source.is_scheduled()) first_again_ = &source;
}

}  // namespace diwarp::rnic
