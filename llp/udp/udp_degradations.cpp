// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_degradations.h"

#include <utility>

namespace diwarp::llp {

void UdpDegradations::add(Counter counter) {
  if (has(counter)) return;
  const size_t index = udp_degradation(counter);
  happened_ |= 1U << index;
  if (callback_) callback_(kUdpDegradations[index]);
}

void UdpDegradations::on_degradation(std::function<void(const Degradation&)> callback) {
  callback_ = std::move(callback);
  if (!callback_) return;
  for (const Degradation& degradation : kUdpDegradations)
    if (has(degradation.counter)) callback_(degradation);
}

}  // namespace diwarp::llp
