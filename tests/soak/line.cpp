// SPDX-License-Identifier: Apache-2.0
#include "soak/line.h"

#include <sstream>

namespace soak {

std::string describe(const Line& line) {
  if (!line.qp) return "there is no queue pair";
  const diwarp::QueuePairAttributes attributes = line.qp->query();
  std::ostringstream text;
  text << "the queue pair is in " << to_string(attributes.state) << ", " << attributes.posted_sends
       << " sends and " << attributes.posted_receives << " receives are posted";
  if (line.type != diwarp::QpType::rd) return text.str();
  for (const diwarp::ReliablePeer& peer : line.qp->peers())
    text << "; peer " << peer.address.to_string() << ": " << peer.in_flight << " of "
         << peer.congestion_window << " in flight";
  return text.str();
}

}  // namespace soak
