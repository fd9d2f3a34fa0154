// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include "base/random.h"
#include "soak/settings.h"

namespace soak {

/// The objects of a process that live as long as it. A device whose datagrams are impaired, with
/// options that the process's seed chose.
struct Handles {
  Handles(const Settings& settings, diwarp::Random& random);

  bool zerocopy = false;
  diwarp::Device device;
  diwarp::ProtectionDomain pd;
  diwarp::CompletionQueue cq;
  diwarp::CompletionQueue shared_cq;  ///< of the shared receives, with room for all
  diwarp::SharedReceiveQueue shared;
  diwarp::CmEventChannel channel;
  diwarp::CmId listener;
};

}  // namespace soak
