// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/rdma_cma.h>

#include "compat/cm/event_channel.h"

namespace diwarp::compat {

/// The channel's next event, made ready for the program. Waits as the channel's descriptor says;
/// throws Refusal. A request comes with an id of its own.
rdma_cm_event* fetch_event(EventChannel& channel);
/// The program has seen it. Throws Refusal(EINVAL) where it has been acknowledged.
void acknowledge_event(rdma_cm_event* event);

}  // namespace diwarp::compat
