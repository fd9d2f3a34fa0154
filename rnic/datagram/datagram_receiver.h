// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "llp/datagram_link.h"

namespace diwarp::rnic {

/// The receiver of the datagrams that come to a queue pair, over a link of its own or of a group.
/// With the baton.
class DatagramReceiver {
 public:
  virtual void handle(const llp::IncomingDatagram& datagram, Time now) = 0;
  /// At the end of a batch of them.
  virtual void after_receive(Time now) = 0;
  /// A link cannot do something that it was to do.
  virtual void count_degradation(const llp::Degradation& what) = 0;

 protected:
  ~DatagramReceiver() = default;
};

}  // namespace diwarp::rnic
