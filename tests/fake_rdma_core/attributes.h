// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include "fake_rdma_core/devices.h"

/// What devices tell of themselves.
namespace fake {

ibv_device_attr device_attributes(const Adapter& adapter);
/// Refuses with EINVAL a port that is not there.
ibv_port_attr port_attributes(const Adapter& adapter, int port);
/// Refuses with EINVAL. The device's address, mapped into IPv6.
ibv_gid gid_of(const Adapter& adapter, int port, int index);

}  // namespace fake
