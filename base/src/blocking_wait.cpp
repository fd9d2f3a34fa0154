// SPDX-License-Identifier: Apache-2.0
#include "base/blocking_wait.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>

#include "diwarp/error.h"

namespace diwarp {

BlockingWait::BlockingWait() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)) {
  if (event_.get() < 0)
    throw Error(std::error_code(errno, std::system_category()),
                "No event descriptor could be made; raise the limit on open files (ulimit -n)");
}

bool BlockingWait::wait(Duration limit) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{seconds.count(), (limit - seconds).count()};
  pollfd watched{event_.get(), POLLIN, 0};
  if (::ppoll(&watched, 1, limit < Duration::zero() ? nullptr : &time, nullptr) <= 0) return false;
  uint64_t one = 0;
  return ::read(event_.get(), &one, sizeof one) > 0;  // another thread may have been quicker
}

void BlockingWait::wake(unsigned count) {
  const uint64_t value = count;
  // Fails only when 2^64 wakes wait already.
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &value, sizeof value);
}

}  // namespace diwarp
