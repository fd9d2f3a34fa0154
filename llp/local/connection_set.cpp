// SPDX-License-Identifier: Apache-2.0
#include "llp/local/connection_set.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

#include "diwarp/error.h"

namespace diwarp::llp {
namespace {

constexpr uint64_t kListenerKey = 0;
/// Connections that are looked at in one step, and arrivals that are accepted in one.
constexpr size_t kMaxLocalEvents = 16;
/// Connections of others that bring no ring are closed after so many seconds.
constexpr uint32_t kSecondsUnneeded = 5;

/// In keys of the epoll set: it is the process that has ended.
constexpr uint64_t kProcessBit = 1;

bool watch(int epoll, int fd, uint64_t key, uint32_t events = EPOLLIN) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

namespace {

UniqueFd new_epoll() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll)
    throw Error(std::error_code(errno, std::generic_category()),
                "No descriptor is left for a device that meets others of its host: raise "
                "RLIMIT_NOFILE, or open it with DeviceOptions::local off");
  return epoll;
}

}  // namespace

ConnectionSet::ConnectionSet() : epoll_(new_epoll()), epoll_in_child_(epoll_.get()) {}

size_t ConnectionSet::size(Role role) const {
  return static_cast<size_t>(std::count_if(
      members_.begin(), members_.end(), [&](const auto& one) { return one->what.role == role; }));
}

/// Edge-triggered: an arrival that no descriptor is left for must not keep the engine awake.
bool ConnectionSet::listen(UniqueFd listener) {
  if (!watch(epoll_.get(), listener.get(), kListenerKey, EPOLLIN | EPOLLET)) return false;
  listener_ = std::move(listener);
  listener_in_child_.emplace(listener_.get());
  return true;
}

bool ConnectionSet::add(Role role, const std::shared_ptr<LocalConnection>& connection) {
  const uint64_t key = next_key_ += 2;
  members_.push_back(std::make_unique<Member>(key, role, connection));
  const bool watched = watch(epoll_.get(), connection->socket(), key) &&
                       watch(epoll_.get(), connection->process(), key | kProcessBit);
  if (!watched) remove(*connection);
  return watched;
}

void ConnectionSet::remove(const LocalConnection& connection) {
  for (const int fd : {connection.socket(), connection.process()})
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::erase_if(members_,
                [&](const auto& one) { return one->what.connection.get() == &connection; });
}

void ConnectionSet::age(const std::function<bool(const LocalConnection&)>& is_needed) {
  if (std::exchange(arrivals_wait_, false)) rearm();
  std::vector<std::shared_ptr<LocalConnection>> old;
  for (const auto& one : members_) {
    if (one->what.role != Role::consumer) continue;
    one->unneeded = is_needed(*one->what.connection) ? 0 : one->unneeded + 1;
    if (one->unneeded >= kSecondsUnneeded) old.push_back(one->what.connection);
  }
  for (const auto& connection : old) {
    connection->end();
    remove(*connection);
  }
}

const ConnectionSet::Member* ConnectionSet::find(uint64_t key) const {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const auto& one) { return one->key == key; });
  return found == members_.end() ? nullptr : found->get();
}

void ConnectionSet::look(const std::function<void(const News&)>& on_news,
                         const std::function<void(UniqueFd)>& on_arrival) {
  std::array<epoll_event, kMaxLocalEvents> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (const epoll_event& event : std::span(events).first(count < 0 ? 0 : size_t(count))) {
    const uint64_t key = event.data.u64;
    if (key == kListenerKey) {
      accept(on_arrival);
      continue;
    }
    const Member* const member = find(key & ~kProcessBit);
    if (member == nullptr) continue;  // removed for news of another one
    const News news = member->what;
    if ((key & kProcessBit) != 0) news.connection->end();
    on_news(news);
  }
}

void ConnectionSet::accept(const std::function<void(UniqueFd)>& on_arrival) {
  for (size_t i = 0; i < kMaxLocalEvents; ++i) {
    UniqueFd arrived = accept_locally(listener_.get());
    if (!arrived) {
      arrivals_wait_ = errno != EAGAIN;
      return;
    }
    on_arrival(std::move(arrived));
  }
  rearm();
}

/// The listener tells once more of those that wait.
void ConnectionSet::rearm() {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = kListenerKey;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
}

}  // namespace diwarp::llp
