// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "base/clock.h"
#include "diwarp/address.h"
#include "diwarp/connect_options.h"

/// The public calls that give an RC queue pair a connection, and that end it, as diwarp::QueuePair
/// has them. They block, and are made without the baton.
namespace diwarp::rnic {

class RcQueuePair;

std::vector<std::byte> connect(RcQueuePair& queue_pair, const Address& peer,
                               const ConnectOptions& options);
std::vector<std::byte> connect_on(RcQueuePair& queue_pair, int descriptor,
                                  const ConnectOptions& options);
std::vector<std::byte> accept_on(RcQueuePair& queue_pair, int descriptor,
                                 const AcceptOptions& options, Duration timeout);
/// From init to rtr, for a connection whose MPA start-up other code has done. Throws Error.
void adopt(RcQueuePair& queue_pair, const StreamAttributes& stream);

void disconnect(RcQueuePair& queue_pair, const DisconnectOptions& options);
bool wait_disconnected(RcQueuePair& queue_pair, Duration timeout);

}  // namespace diwarp::rnic
