// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include "compat/verbs/device.h"

/// What devices and ports say of themselves.
namespace diwarp::compat {

/// Reads and atomics of one connection, each way. librdmacm keeps the number in a byte, and 255
/// stands for "as many as there can be".
inline constexpr int kMaxDepth = 128;
inline constexpr int kMaxQueueDepth = 65536;
inline constexpr int kMaxSges = 64;
inline constexpr int kMaxInlineData = 1024;
inline constexpr int kMaxCompletions = 1 << 20;

ibv_device_attr device_attributes(const Device& device);
/// Throws Refusal(EINVAL) for another port than 1.
ibv_port_attr port_attributes(const Device& device, uint32_t port);

}  // namespace diwarp::compat
