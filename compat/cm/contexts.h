// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

namespace diwarp::compat {

/// What ids of a device share: a context and a protection domain, which are never closed.
struct SharedContext {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
};

/// The device's context. Opens it when it is first asked for. Throws Refusal.
ibv_context* context_for(ibv_device* device);
/// The same, with the protection domain, which begins the library's device.
SharedContext shared_context(ibv_device* device);

}  // namespace diwarp::compat
