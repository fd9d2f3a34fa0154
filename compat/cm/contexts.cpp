// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/contexts.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <utility>

#include "compat/common/error.h"
#include "compat/common/immortal.h"

namespace diwarp::compat {
namespace {

/// By process, too: a forked child can use nothing of its parent's.
struct Shared {
  std::mutex mutex;  // guards what follows
  std::map<std::pair<pid_t, ibv_device*>, SharedContext> contexts;
};

Shared& shared() {
  static Immortal<Shared> of_process;
  return *of_process;
}

SharedContext& opened(ibv_device* device) {
  SharedContext& found = shared().contexts[{::getpid(), device}];
  if (found.context == nullptr) found.context = ibv_open_device(device);
  refuse_by_errno_if(found.context == nullptr);
  return found;
}

}  // namespace

ibv_context* context_for(ibv_device* device) {
  const std::lock_guard lock(shared().mutex);
  return opened(device).context;
}

SharedContext shared_context(ibv_device* device) {
  const std::lock_guard lock(shared().mutex);
  SharedContext& found = opened(device);
  if (found.pd == nullptr) found.pd = ibv_alloc_pd(found.context);
  refuse_by_errno_if(found.pd == nullptr);
  return found;
}

}  // namespace diwarp::compat
