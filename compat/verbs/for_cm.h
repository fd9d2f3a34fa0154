// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/device.h>
#include <diwarp/queue_pair.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "compat/common/export.h"

/// What librdmacm.so.1 takes from libibverbs.so.1, beside libibverbs' own functions. The version
/// under which it is exported is diwarp's own, so that parts of two versions are not loaded
/// together.
namespace diwarp::compat::shared {

/// Throws Refusal(EADDRNOTAVAIL).
DIWARP_COMPAT_EXPORT ibv_device* device_for(const Address& address);
DIWARP_COMPAT_EXPORT std::vector<ibv_device*> listed_devices();
/// The library's device, of this process.
DIWARP_COMPAT_EXPORT const diwarp::Device& engine_device(ibv_device* device);
/// As ibv_create_qp_ex(), for a queue pair that only the connection manager connects.
DIWARP_COMPAT_EXPORT ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init);
DIWARP_COMPAT_EXPORT diwarp::QueuePair& queue_pair(ibv_qp* qp);
/// Null where the device has none of this number.
DIWARP_COMPAT_EXPORT ibv_qp* find_queue_pair(ibv_device* device, uint32_t number);

}  // namespace diwarp::compat::shared
