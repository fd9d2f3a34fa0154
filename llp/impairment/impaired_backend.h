// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "llp/backend.h"

namespace diwarp::llp {

/// Its value, as parse_impairment() reads it, impairs the datagrams that the devices of this
/// process send. Not set or empty: they are sent as they are.
inline constexpr const char* kImpairVariable = "DIWARP_IMPAIR";

bool wants_impairment();

/// A backend like `inner`, whose datagram links impair what they send as the variable has it, each
/// from a seed of its own: the first has the variable's, the next one more. It counts in the
/// device's counters. Without the variable `inner` itself. Throws Error if the variable's value
/// asks for no impairment that there is.
///
/// The links must be ones that tell by their descriptor when there is something to receive.
std::unique_ptr<Backend> impaired_as_wanted(std::unique_ptr<Backend> inner, Counters& counters);

}  // namespace diwarp::llp
