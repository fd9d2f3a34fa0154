// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include "compat/verbs/device.h"

/// What devices and ports say of themselves.
namespace diwarp::compat {

/// Reads and atomics of one connection, each way. librdmacm keeps the number in a byte, and 255
/// stands for "as many as there can be".
inline constexpr int kMaxDepth = 128;

/// Starts the engine, which knows the limits.
ibv_device_attr device_attributes(Device& device);
/// Throws Refusal(EINVAL) for another port than 1.
ibv_port_attr port_attributes(const Device& device, uint32_t port);

}  // namespace diwarp::compat
