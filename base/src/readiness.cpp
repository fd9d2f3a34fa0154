// SPDX-License-Identifier: Apache-2.0
#include "base/readiness.h"

#include <poll.h>
#include <sys/epoll.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "diwarp/error.h"

namespace diwarp {
namespace {

[[noreturn]] void refuse() {
  throw Error(std::error_code(errno, std::system_category()),
              "Descriptors cannot be waited for; raise the limit on open files (ulimit -n)");
}

}  // namespace

Readiness::Readiness() : all_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!all_) refuse();
}

void Readiness::add(int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(all_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) refuse();
}

void Readiness::remove(int descriptor) {
  ::epoll_ctl(all_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
}

void Readiness::wait(Duration limit) const {
  pollfd all{.fd = all_.get(), .events = POLLIN, .revents = 0};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{seconds.count(), (limit - seconds).count()};
  ::ppoll(&all, 1, &time, nullptr);
}

}  // namespace diwarp
