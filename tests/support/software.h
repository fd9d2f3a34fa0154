// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/device.h"
#include "diwarp/queue_pair.h"
#include "provider/own.h"
#include "rnic/device.h"
#include "rnic/rc/rc_queue_pair.h"
#include "verbs/handle_access.h"

namespace diwarp::test {

/// The software RNIC's objects behind public handles.
inline rnic::Device& software(const Device& device) {
  return provider::own<rnic::Device>(*impl_of(device), "device");
}
inline rnic::RcQueuePair& software(const QueuePair& queue_pair) {
  return provider::own<rnic::RcQueuePair>(*impl_of(queue_pair), "queue pair");
}

}  // namespace diwarp::test
