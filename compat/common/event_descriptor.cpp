// SPDX-License-Identifier: Apache-2.0
#include "compat/common/event_descriptor.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "compat/common/error.h"

namespace diwarp::compat {

bool may_wait(int descriptor) { return (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0; }

EventDescriptor::EventDescriptor() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)) {
  refuse_by_errno_if(descriptor_ < 0);
}

EventDescriptor::~EventDescriptor() { ::close(descriptor_); }

void EventDescriptor::put(uint64_t tokens) {
  if (tokens == 0 || !process_.is_own()) return;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &tokens, sizeof tokens);
}

void EventDescriptor::take() {
  process_.check();
  uint64_t token = 0;
  refuse_by_errno_if(::read(descriptor_, &token, sizeof token) < 0);
}

void EventDescriptor::absorb() {
  if (!process_.is_own()) return;
  uint64_t token = 0;
  const iovec where{&token, sizeof token};
  [[maybe_unused]] const ssize_t taken = ::preadv2(descriptor_, &where, 1, -1, RWF_NOWAIT);
}

}  // namespace diwarp::compat
