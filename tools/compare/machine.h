// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>

#include "common/control.h"

namespace diwarp::tools {

/// The things that the figures of a run depend on: processors, kernel, offloads, backends, buffers.
Json describe_machine(const Address& address);

}  // namespace diwarp::tools
