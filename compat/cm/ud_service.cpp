// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_service.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>

#include "compat/cm/hub.h"
#include "compat/cm/ud_counters.h"
#include "compat/cm/ud_events.h"
#include "compat/common/immortal.h"
#include "compat/common/log.h"
#include "compat/common/signals_blocked.h"
#include "compat/verbs/for_cm.h"

namespace diwarp::compat {
namespace {

using std::chrono::steady_clock;

struct Services {
  std::mutex mutex;  // guards what follows
  std::map<std::pair<pid_t, ibv_device*>, UdService*> all;
};

Services& services() {
  static Immortal<Services> of_process;
  return *of_process;
}

}  // namespace

// --- Requests.

UdRequest::~UdRequest() {
  if (service_ == nullptr) return;
  try {
    answer({.status = UdStatus::rejected});
  } catch (...) {  // no memory: the requester gives up in time
  }
}

void UdRequest::answer(UdAnswerMessage message) {
  refuse_if(service_ == nullptr, EINVAL);
  message.number = key_.number;
  std::exchange(service_, nullptr)->answer(listener_, key_, message);
}

// --- The calls of ids.

UdService& UdService::of(ibv_device* device) {
  const std::lock_guard lock(services().mutex);
  UdService*& found = services().all[{::getpid(), device}];
  if (found == nullptr) found = new UdService(device);
  return *found;
}

UdService::UdService(ibv_device* device)
    : process_(::getpid()),
      device_(device),
      channel_(shared::engine_device(device)),
      asker_(shared::engine_device(device), channel_, kAsker, std::nullopt) {
  print_ud_counters_at_exit();
  const SignalsBlocked blocked;
  std::thread([this] { run(); }).detach();
}

/// The completion of the send wakes the thread, which then knows when to repeat it.
void UdService::ask(uint64_t id, const Address& service, std::span<const std::byte> private_data) {
  const std::lock_guard lock(mutex_);
  const uint64_t number = uint64_t{random_()} << 32 | random_();
  std::vector<std::byte> request =
      encode(UdRequestMessage{number, {private_data.begin(), private_data.end()}});
  send(asker_, service, request);
  queries_.begin(number, id, service, std::move(request), steady_clock::now());
}

void UdService::cancel(uint64_t id) {
  const std::lock_guard lock(mutex_);
  queries_.cancel(id);
}

void UdService::listen(uint64_t id, UdpPort port) {
  auto messenger =
      std::make_unique<UdMessenger>(shared::engine_device(device_), channel_, id, std::move(port));
  const std::lock_guard lock(mutex_);
  listeners_[id].messenger = std::move(messenger);
}

void UdService::stop_listening(uint64_t id) {
  std::map<uint64_t, Listener>::node_type stopped;  // its queue pair ends without the lock
  {
    const std::lock_guard lock(mutex_);
    stopped = listeners_.extract(id);
  }
  if (!stopped.empty()) stopped.mapped().messenger->finish_sends();
}

/// Once the listener is gone the answer comes from another port, and is not repeated.
void UdService::answer(uint64_t listener, const UdRequestKey& key, const UdAnswerMessage& message) {
  const std::vector<std::byte> bytes = encode(message);
  const std::lock_guard lock(mutex_);
  const auto found = listeners_.find(listener);
  if (found == listeners_.end()) return send(asker_, key.requester, bytes);
  found->second.seen.note_answer(key, bytes, steady_clock::now());
  send(*found->second.messenger, key.requester, bytes);
}

void UdService::send(UdMessenger& messenger, const Address& destination,
                     std::span<const std::byte> message) {
  if (!messenger.send(destination, message)) count(UdCounter::not_sent);
}

// --- The thread.

void UdService::run() {
  for (;;) try {
      if (const auto event = channel_.get_event(wait())) serve(event->context);
      run_timers();
    } catch (const std::exception& error) {  // no memory: what came is lost, and repeated
      log_line(LogLevel::error, std::string("resolving UD services: ") + error.what());
    }
}

Duration UdService::wait() const {
  const std::lock_guard lock(mutex_);
  const auto next = queries_.next();
  if (!next) return Duration(-1);
  return std::max<Duration>(Duration::zero(), *next - steady_clock::now());
}

void UdService::serve(uint64_t context) {
  Events events;
  {
    const std::lock_guard lock(mutex_);
    const auto listener = listeners_.find(context);
    if (context == kAsker)
      asker_.receive([&](const Address& source, std::span<const std::byte> bytes) {
        on_answer(source, bytes, events);
      });
    else if (listener != listeners_.end())
      listener->second.messenger->receive(
          [&](const Address& source, std::span<const std::byte> bytes) {
            on_request(context, source, bytes, events);
          });
  }
  leave(std::move(events));
}

void UdService::on_answer(const Address&, std::span<const std::byte> bytes, Events& events) {
  auto answer = parse_ud_answer(bytes);
  if (!answer) return count(UdCounter::malformed);
  const auto query = queries_.take(answer->number);
  if (!query) return count(UdCounter::unknown_answer);
  events.emplace_back(query->id, answer_event(*answer, query->service));
}

void UdService::on_request(uint64_t id, const Address& source, std::span<const std::byte> bytes,
                           Events& events) {
  const auto request = parse_ud_request(bytes);
  if (!request) return count(UdCounter::malformed);
  Listener& listener = listeners_.at(id);
  const UdRequestKey key{source, request->number};
  const auto [verdict, answer] = listener.seen.note_request(key, steady_clock::now());
  switch (verdict) {
    case UdRequestsSeen::Verdict::fresh:
      events.emplace_back(id, request_event(UdRequest(*this, id, key), request->private_data));
      events.back().second.device = device_;
      return;
    case UdRequestsSeen::Verdict::answered:
      send(*listener.messenger, source, *answer);
      return count(UdCounter::repeated);
    case UdRequestsSeen::Verdict::waiting:
      return count(UdCounter::repeated);
    case UdRequestsSeen::Verdict::no_room:
      return count(UdCounter::no_room);
  }
}

void UdService::run_timers() {
  Events events;
  {
    const std::lock_guard lock(mutex_);
    const TimePoint now = steady_clock::now();
    while (const auto peer = asker_.take_unreachable())
      for (const UdQueries::Query& query : queries_.take_all_to(*peer))
        events.emplace_back(query.id, unreachable_event(-ECONNREFUSED));
    for (const UdQueries::Query& query : queries_.take_expired(now)) {
      count(UdCounter::given_up);
      events.emplace_back(query.id, unreachable_event(-ETIMEDOUT));
    }
    for (const UdQueries::Query& query : queries_.due(now)) {
      count(UdCounter::sent_again);
      send(asker_, query.service, query.request);
    }
  }
  leave(std::move(events));
}

void UdService::leave(Events events) {
  for (auto& [id, event] : events) Hub::of_process().post(id, std::move(event));
}

}  // namespace diwarp::compat
