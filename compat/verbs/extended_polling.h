// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

namespace diwarp::compat {

/// Throws Refusal for what a completion queue cannot have, or tell of its completions.
void check_extended(const ibv_cq_init_attr_ex& init);
/// Fills in the functions by which programs poll and read.
void fill_functions(ibv_cq_ex& cq);

}  // namespace diwarp::compat
