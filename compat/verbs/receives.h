// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/types.h>
#include <infiniband/verbs.h>

#include <system_error>

#include "compat/verbs/sges.h"

namespace diwarp::compat {

/// Posts a list of receives to a queue pair or a shared receive queue. The first that is refused is
/// `*bad`, and its error is thrown as a Refusal.
template <class Queue>
void post_receives(Queue& queue, Pd& domain, ibv_recv_wr* request, ibv_recv_wr** bad) {
  for (; request != nullptr; request = request->next) {
    *bad = request;
    const Sges sges(request->sg_list, request->num_sge, &domain.offset_regions);
    const std::error_code error = queue.post_recv({.wr_id = request->wr_id, .sges = sges.list()});
    refuse_if(static_cast<bool>(error), errno_of(error));
  }
}

}  // namespace diwarp::compat
