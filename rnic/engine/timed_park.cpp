// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/timed_park.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "diwarp/error.h"

namespace diwarp::rnic {

TimedPark::TimedPark() : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
  if (timer_.get() < 0)
    throw Error(std::error_code(errno, std::system_category()),
                "No timer descriptor could be made; raise the limit on open files (ulimit -n)");
}

void TimedPark::end_in(Duration time) {
  time = std::max(time, Duration(1));  // 0 would stop the timer
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  const itimerspec end{{}, {seconds.count(), (time - seconds).count()}};
  ::timerfd_settime(timer_.get(), 0, &end, nullptr);
}

void TimedPark::wait() {
  uint64_t expirations = 0;
  while (::read(timer_.get(), &expirations, sizeof expirations) < 0 && errno == EINTR) {
  }
}

}  // namespace diwarp::rnic
