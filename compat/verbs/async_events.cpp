// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/async_events.h"

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/verbs/queue_pair.h"
#include "compat/verbs/shared_receive_queue.h"

namespace diwarp::compat {

void AsyncEvents::on_async_event(ibv_event_type type) {
  FetchableAsyncEvent event;
  event.event.element = element_;
  event.event.event_type = type;
  event.counter = this;
  context_.async_events.push(event);
}

void AsyncEvents::end() {
  context_.async_events.purge(
      [this](const FetchableAsyncEvent& event) { return event.counter == this; });
  acknowledgements_.wait_for_all();
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  quietly([&] {
    switch (event->event_type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_SQ_DRAINED:
      case IBV_EVENT_QP_LAST_WQE_REACHED:
        return qp_of(event->element.qp).events().acknowledge();
      case IBV_EVENT_SRQ_LIMIT_REACHED:
        return srq_of(event->element.srq).events().acknowledge();
      default:
        return;  // nothing counts others
    }
  });
}

}  // extern "C"
