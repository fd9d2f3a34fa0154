// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <diwarp/verbs.h>

/// Completions of diwarp as those of libibverbs.
namespace fake {

/// Whether it is of the receive queue.
bool is_receive(const diwarp::WorkCompletion& completion);

/// As an adapter fills it in: of a failed one only wr_id, status, qp_num and vendor_err are valid,
/// and other fields have values that no good one has; byte_len of Sends and Writes is 0.
ibv_wc work_completion(const diwarp::WorkCompletion& completion);

}  // namespace fake
