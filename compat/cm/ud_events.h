// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <rdma/rdma_cma.h>

#include <cstddef>
#include <vector>

#include "compat/cm/event_channel.h"
#include "compat/cm/ud_messages.h"

/// The events of UD services, as the kernel has them.
namespace diwarp::compat {

/// An event without more: a step that is done, or that failed.
PendingCmEvent plain_event(rdma_cm_event_type type, int status);
/// The service answered: the queue pair to send to, or that it does not want to.
PendingCmEvent answer_event(UdAnswerMessage& answer, const Address& service);
/// A negative errno value.
PendingCmEvent unreachable_event(int status);
PendingCmEvent request_event(UdRequest request, std::vector<std::byte> private_data);
/// The id is in the group. `program_context` is the program's own.
PendingCmEvent group_event(const Address& group, void* program_context, uint32_t q_key);

}  // namespace diwarp::compat
