// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "rnic/queues/queue_pair.h"

namespace diwarp::rnic {

/// Makes a queue pair of the type that `init` asks for, in its first usable state.
std::shared_ptr<QueuePair> make_queue_pair(std::shared_ptr<ProtectionDomain> domain,
                                           const QueuePairInit& init);

}  // namespace diwarp::rnic
