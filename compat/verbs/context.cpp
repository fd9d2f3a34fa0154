// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/context.h"

#include <pthread.h>

#include <cerrno>

#include "compat/common/error.h"
#include "compat/verbs/functions.h"

namespace diwarp::compat {

Context::Context(Device& device) : device_(device) {
  // The size of the newest version: its functions are there, and null.
  verbs.sz = sizeof verbs + sizeof newer;
  fill_functions(verbs);
  ibv_context& context = verbs.context;
  context.device = &device;
  context.cmd_fd = -1;
  context.async_fd = async_events.descriptor();
  context.num_comp_vectors = 1;
  context.abi_compat = __VERBS_ABI_IS_EXTENDED;
  ::pthread_mutex_init(&context.mutex, nullptr);
}

Context::~Context() { ::pthread_mutex_destroy(&verbs.context.mutex); }

/// Looks at nothing in the context, which may have been closed: LiveObjects knows.
Context& context_of(ibv_context* context) {
  refuse_if(context == nullptr, EINVAL);
  // The functions of ibv_context are read by inline code, so its place is fixed.
  auto* const bytes = reinterpret_cast<unsigned char*>(context);
  auto* const block = reinterpret_cast<ContextBlock*>(bytes - offsetof(ContextBlock, verbs) -
                                                      offsetof(verbs_context, context));
  return *static_cast<Context*>(block);
}

}  // namespace diwarp::compat
