// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_peers.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <utility>

#include "diwarp/error.h"
#include "llp/socket/local_destination.h"
#include "llp/socket/socket_owner.h"

namespace diwarp::llp {
namespace {

constexpr Duration kSweep = std::chrono::seconds(1);
/// Steps between two looks at what came: while an answer is due, and else.
constexpr uint32_t kStepsBetweenLooks = 16;
constexpr uint32_t kIdleStepsBetweenLooks = 256;

/// The socket by which others find a device; none where all its names are taken.
UniqueFd listen_for(const Address& device) {
  for (uint32_t number = 0; number < kMaxLocalNames; ++number)
    if (UniqueFd listener = listen_locally(local_name(::geteuid(), device.with_port(0), number)))
      return listener;
  return UniqueFd();
}

}  // namespace

LocalPeers::LocalPeers(const Address& address, const LocalSettings& settings, Connector& connector,
                       Counters& counters, const Clock& clock)
    : settings_(settings),
      connector_(connector),
      counters_(counters),
      clock_(clock),
      offers_(connections_, settings_, counters),
      acceptor_(connections_, settings_, counters) {
  if (!tells_owners())
    throw Error(make_error_code(Errc::unsupported_operation),
                "The kernel does not tell who made a socket (sock_diag with UDP_DIAG), so nothing "
                "goes through shared memory: have that module loaded, or open the device with "
                "DeviceOptions::local off");
  if (UniqueFd listener = listen_for(address)) connections_.listen(std::move(listener));
}

// --- What came.

/// Threads that poll may never come to the poller, so a step looks now and then by itself.
void LocalPeers::gather(bool told) {
  if (told || ++steps_ >= (answer_is_due_ ? kStepsBetweenLooks : kIdleStepsBetweenLooks)) {
    steps_ = 0;
    look();
  }
  while (RingUser* const user = ready_.pop_front()) in_turn_.push_back(*user);
}

/// Whatever finds no memory ends as if it had never come.
void LocalPeers::look() {
  const std::lock_guard lock(mutex_);
  connections_.look(
      [this](const ConnectionSet::News& news) {
        try {
          take(news);
        } catch (const std::bad_alloc&) {
          news.connection->end();
        }
      },
      [this](UniqueFd arrived) {
        try {
          acceptor_.arrive(std::move(arrived));
        } catch (const std::bad_alloc&) {
          counters_.add(Counter::local_refused);
        }
      });
  const bool sweeps = next_sweep_ != Time::max() && clock_.now() >= next_sweep_;
  if (sweeps) sweep();
  if (next_sweep_ == Time::max() && !is_idle()) next_sweep_ = clock_.now() + kSweep;
  answer_is_due_ = offers_.waits();
}

bool LocalPeers::is_idle() const { return offers_.idle() && connections_.is_idle(); }

void LocalPeers::take(const ConnectionSet::News& news) {
  if (news.role == ConnectionSet::Role::producer)
    offers_.take(news.connection);
  else
    acceptor_.take(news.connection, users_);
}

/// What finds no memory is done the next time.
void LocalPeers::sweep() {
  try {
    offers_.sweep();
    acceptor_.sweep();
  } catch (const std::bad_alloc&) {
    counters_.add(Counter::local_refused);
  }
  next_sweep_ = is_idle() ? Time::max() : clock_.now() + kSweep;
}

Duration LocalPeers::silence() {
  if (!ready_.empty()) return Duration::zero();
  if (next_sweep_ == Time::max()) return Duration::max();
  return std::max(next_sweep_ - clock_.now(), Duration::zero());
}

void* LocalPeers::next_ready() {
  RingUser* const user = in_turn_.pop_front();
  return user != nullptr ? user->key() : nullptr;
}

// --- Users.

void LocalPeers::add(RingUser& user) {
  const std::lock_guard lock(mutex_);
  users_.add(user);
}

void LocalPeers::remove(RingUser& user) {
  const std::lock_guard lock(mutex_);
  users_.remove(user);
  offers_.forget(user);
  acceptor_.forget(user);
}

void LocalPeers::seek(RingUser& user, LocalRoute route, uint32_t number) {
  const Destination to(route.to, number);
  if (!is_local_destination(route.to)) return user.nobody_there(to);
  const std::lock_guard lock(mutex_);
  try {
    Address from = route.from;
    const bool known = !from.is_any() || !connector_.find_source(route.from, route.to, from);
    if (!known) return user.nobody_there(to);
    route.from = from.with_port(route.from.port());
    offers_.seek(user, route, number);
  } catch (const std::bad_alloc&) {
    user.nobody_there(to);
  }
  if (next_sweep_ == Time::max()) next_sweep_ = clock_.now() + kSweep;
  steps_ = kIdleStepsBetweenLooks;  // the answers may be there by the next step
}

void LocalPeers::count_sent(uint64_t datagrams, uint64_t bytes, uint64_t lost) {
  counters_.add(Counter::local_datagrams, datagrams);
  counters_.add(Counter::local_bytes, bytes);
  if (lost != 0) counters_.add(Counter::local_overflow, lost);
}

}  // namespace diwarp::llp
