// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/attributes.h>
#include <infiniband/verbs.h>

#include <array>

namespace diwarp::compat {

/// What a program is told of an asynchronous event of the library's.
struct AsyncEventFacts {
  enum class About : uint8_t { queue_pair, shared_receive_queue };

  AsyncEventType of;
  ibv_event_type type;
  About about;
};

/// Others are told of in another way (peer_closed: by the connection manager), or programs need not
/// know (cq_overflow: nothing is lost).
inline constexpr std::array kAsyncEvents{
    AsyncEventFacts{AsyncEventType::qp_fatal, IBV_EVENT_QP_FATAL,
                    AsyncEventFacts::About::queue_pair},
    AsyncEventFacts{AsyncEventType::sq_drained, IBV_EVENT_SQ_DRAINED,
                    AsyncEventFacts::About::queue_pair},
    AsyncEventFacts{AsyncEventType::last_wqe_reached, IBV_EVENT_QP_LAST_WQE_REACHED,
                    AsyncEventFacts::About::queue_pair},
    AsyncEventFacts{AsyncEventType::srq_limit_reached, IBV_EVENT_SRQ_LIMIT_REACHED,
                    AsyncEventFacts::About::shared_receive_queue},
};

/// Null for an event that programs are not told of.
constexpr const AsyncEventFacts* facts_of(AsyncEventType type) {
  for (const AsyncEventFacts& one : kAsyncEvents)
    if (one.of == type) return &one;
  return nullptr;
}

}  // namespace diwarp::compat
