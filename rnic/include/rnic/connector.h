// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/attributes.h"
#include "rnic/established.h"

namespace diwarp::rnic {

class Device;

/// Connects to a listener: TCP, then MPA's request and reply (RFC 5044 section 7.1), on the
/// device's control path. Waits for the outcome. Throws as QueuePair::connect() has it.
Established open_connection(Device& device, const Address& peer, const ConnectOptions& options);

}  // namespace diwarp::rnic
