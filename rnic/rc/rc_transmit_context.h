// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/counters.h"
#include "ddp/protection_context.h"
#include "llp/stream.h"
#include "rnic/queues/work_queue.h"
#include "rnic/rc/rc_requester.h"
#include "rnic/rc/rc_responder.h"

namespace diwarp::rnic {

/// What a burst needs from the queue pair.
struct RcTransmitContext {
  SendQueue& sends;
  RcRequester& requester;
  RcResponder& responder;
  llp::Stream& stream;
  Counters& counters;
  const ddp::ProtectionContext& protection;
  bool serves_sends;   ///< the state lets the send queue begin messages
  size_t burst_bytes;  ///< kBurstBytes or kLoneBurstBytes
  bool zero_copy;      ///< the stream need not copy what Sends and Writes carry
};

}  // namespace diwarp::rnic
