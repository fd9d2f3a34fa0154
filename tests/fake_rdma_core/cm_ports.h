// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <diwarp/verbs.h>

#include "fake_rdma_core/devices.h"

namespace fake {

/// The port that an id is bound to. No other id of the process can have it meanwhile, and a socket
/// keeps other processes from it.
class PortReservation {
 public:
  /// Port 0: any that is free. Refuses with EADDRINUSE.
  explicit PortReservation(const diwarp::Address& local);
  ~PortReservation();
  PortReservation(const PortReservation&) = delete;
  PortReservation& operator=(const PortReservation&) = delete;

  uint16_t number() const { return bound_.port(); }

 private:
  int descriptor_ = -1;
  diwarp::Address bound_;
};

/// The device over which this host speaks to `peer`; null: there is none.
Adapter* adapter_towards(const diwarp::Address& peer);

}  // namespace fake
