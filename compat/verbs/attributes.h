// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include "compat/verbs/device.h"

/// What devices and ports say of themselves.
namespace diwarp::compat {

/// Starts the engine, which knows the limits.
ibv_device_attr device_attributes(Device& device);
/// Throws Refusal(EINVAL) for another port than 1.
ibv_port_attr port_attributes(const Device& device, uint32_t port);

}  // namespace diwarp::compat
