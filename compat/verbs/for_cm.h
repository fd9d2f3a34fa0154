// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/device.h>
#include <diwarp/queue_pair.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
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
/// As ibv_create_qp_ex(), for a queue pair that only the connection manager connects, or of type UD
/// one that sends to groups by the interface of this name; empty: the system's choice. Throws
/// Refusal, or diwarp::Error.
DIWARP_COMPAT_EXPORT ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init,
                                               const std::string& group_interface);
/// These, join() and leave() throw Refusal(EINVAL) for a queue pair that was destroyed.
DIWARP_COMPAT_EXPORT diwarp::QueuePair& queue_pair(ibv_qp* qp);
DIWARP_COMPAT_EXPORT uint32_t number(ibv_qp* qp);
/// Joins a UD queue pair to a group, on the port that all groups have, by the interface of this
/// name. Throw Refusal, or diwarp::Error.
DIWARP_COMPAT_EXPORT void join(ibv_qp* qp, const Address& group, const std::string& interface);
DIWARP_COMPAT_EXPORT void leave(ibv_qp* qp, const Address& group, const std::string& interface);
/// Null where the device has none of this number.
DIWARP_COMPAT_EXPORT ibv_qp* find_queue_pair(ibv_device* device, uint32_t number);

}  // namespace diwarp::compat::shared
