// SPDX-License-Identifier: Apache-2.0
#include "llp/poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <string>

#include "diwarp/error.h"

namespace diwarp::llp {
namespace {

constexpr size_t kMaxEvents = 64;  // per system call

[[noreturn]] void throw_errno(const std::string& message) {
  throw Error({errno, std::generic_category()}, message);
}

[[noreturn]] void refuse(int fd) {
  throw_errno("Descriptor " + std::to_string(fd) + " cannot be polled");
}

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

int to_milliseconds(Duration duration) {
  const auto rounded_up = std::chrono::ceil<std::chrono::milliseconds>(duration).count();
  return static_cast<int>(std::clamp<int64_t>(rounded_up, -1, INT_MAX));
}

/// Longer timeouts than this are for ever, so that no sum overflows.
constexpr Duration kForEver = std::chrono::hours(24 * 365);

PollEvent to_event(const epoll_event& event) {
  return {event.data.ptr, (event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
          (event.events & (EPOLLERR | EPOLLHUP)) != 0};
}

/// Without waiting, which engines do all the time.
int look(int epoll, std::span<epoll_event> ready) {
  int count = 0;
  do {
    count = ::epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), 0);
  } while (count < 0 && errno == EINTR);
  return count;
}

}  // namespace

Poller::Poller()
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!epoll_ || !wake_) throw_errno("No poller could be made: raise the limit of descriptors");
  add(wake_.get(), this);
}

void Poller::add(int fd, void* key, bool want_write) {
  if (!try_add(fd, key, true, want_write)) refuse(fd);
}

bool Poller::try_add(int fd, void* key, bool want_read, bool want_write) noexcept {
  return control(EPOLL_CTL_ADD, fd, key, want_read, want_write);
}

void Poller::modify(int fd, void* key, bool want_read, bool want_write) {
  if (!control(EPOLL_CTL_MOD, fd, key, want_read, want_write)) refuse(fd);
}

void Poller::remove(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

bool Poller::control(int operation, int fd, void* key, bool want_read, bool want_write) noexcept {
  epoll_event event{};
  if (want_read) event.events |= EPOLLIN;
  if (want_write) event.events |= EPOLLOUT;
  event.data.ptr = key;
  return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

int Poller::collect(std::span<epoll_event> ready, Duration timeout) {
  if (timeout == Duration::zero()) return look(epoll_.get(), ready);
  if (timeout <= Duration{0} || timeout > kForEver) {
    const Duration fixed = timeout > kForEver ? Duration{-1} : timeout;
    int count = 0;
    do {
      count = collect_once(ready, fixed);
    } while (count < 0 && errno == EINTR);
    return count;
  }
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  int count = collect_once(ready, timeout);
  while (count < 0 && errno == EINTR) {
    const Duration left = deadline - std::chrono::steady_clock::now();
    count = collect_once(ready, std::max(left, Duration{0}));
  }
  return count;
}

int Poller::collect_once(std::span<epoll_event> ready, Duration timeout) {
  const int size = static_cast<int>(ready.size());
  if (precise_ && timeout > Duration{0}) {
    const timespec time = to_timespec(timeout);
    const int count = ::epoll_pwait2(epoll_.get(), ready.data(), size, &time, nullptr);
    if (count >= 0 || errno != ENOSYS) return count;
    precise_ = false;  // Linux before 5.11
  }
  const int bound = timeout < Duration{0} ? -1 : to_milliseconds(timeout);
  return ::epoll_wait(epoll_.get(), ready.data(), size, bound);
}

size_t Poller::wait(std::span<PollEvent> events, Duration timeout) {
  std::array<epoll_event, kMaxEvents> ready;
  const size_t wanted = std::clamp<size_t>(events.size(), 1, ready.size());
  const int count = collect(std::span(ready).first(wanted), timeout);
  size_t filled = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    if (event.data.ptr == this) {
      if (timeout != Duration::zero()) consume_wake();
    } else if (filled < events.size()) {
      events[filled++] = to_event(event);
    }
  }
  return filled;
}

void Poller::wake() {
  const uint64_t one = 1;
  // A full counter fails, and wakes all the same.
  static_cast<void>(::write(wake_.get(), &one, sizeof one));
}

void Poller::consume_wake() {
  uint64_t wakes = 0;
  static_cast<void>(::read(wake_.get(), &wakes, sizeof wakes));
}

}  // namespace diwarp::llp
