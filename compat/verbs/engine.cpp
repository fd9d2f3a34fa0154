// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/engine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "compat/common/immortal.h"
#include "compat/common/log.h"
#include "compat/common/process.h"
#include "compat/common/settings.h"
#include "compat/common/signals_blocked.h"
#include "compat/verbs/async_event_facts.h"

namespace diwarp::compat {
namespace {

DeviceOptions options() {
  DeviceOptions chosen;
  chosen.spin = settings().spin;
  chosen.cpu = settings().cpu;
  return chosen;
}

/// Devices whose counters are printed when the process ends.
Immortal<std::vector<const Engine*>>& counted() {
  static Immortal<std::vector<const Engine*>> all;
  return all;
}

void print_counters() {
  for (const Engine* engine : *counted()) {
    if (!engine->of_this_process()) continue;
    for (const CounterValue& counter : engine->device().counters())
      if (counter.value != 0)
        log_line(LogLevel::error,
                 "counter " + std::string(counter.name) + " " + std::to_string(counter.value));
  }
}

void count_at_exit(const Engine& engine) {
  if (!settings().counters) return;
  if (counted()->empty()) std::atexit(print_counters);
  counted()->push_back(&engine);
}

diwarp::Device open(const Address& address) {
  const SignalsBlocked blocked;  // the library's threads inherit it
  return diwarp::Device::open(address, options());
}

}  // namespace

Engine::Engine(const Address& address)
    : process_(::getpid()),
      device_(open(address)),
      events_(device_),
      long_waits_(device_),
      meeting_numbers_(device_) {
  Process::begin_use();
  const SignalsBlocked blocked;
  std::thread([this] { run(); }).detach();
  count_at_exit(*this);
}

bool Engine::of_this_process() const { return process_ == ::getpid(); }

void Engine::add_queue_pair(uint32_t number, EventTarget& target) {
  const std::lock_guard lock(mutex_);
  queue_pairs_[number] = &target;
}

void Engine::remove_queue_pair(uint32_t number) {
  if (!of_this_process()) return;
  const std::lock_guard lock(mutex_);
  queue_pairs_.erase(number);
}

uint64_t Engine::add_object(EventTarget& target) {
  const std::lock_guard lock(mutex_);
  objects_[++last_object_] = &target;
  return last_object_;
}

void Engine::remove_object(uint64_t number) {
  if (!of_this_process()) return;
  const std::lock_guard lock(mutex_);
  objects_.erase(number);
}

void Engine::run() {
  for (;;) try {
      if (const auto event = events_.get_event(Duration(-1))) dispatch(*event);
    } catch (const std::exception& error) {  // no memory for an event: it is lost
      log_line(LogLevel::error, std::string("an asynchronous event was lost: ") + error.what());
    }
}

void Engine::dispatch(const AsyncEvent& event) {
  const AsyncEventFacts* const facts = facts_of(event.type);
  if (facts == nullptr) return;
  const std::lock_guard lock(mutex_);
  if (facts->about == AsyncEventFacts::About::queue_pair) {
    if (const auto found = queue_pairs_.find(event.qp_number); found != queue_pairs_.end())
      found->second->on_async_event(facts->type);
  } else if (const auto found = objects_.find(event.context); found != objects_.end()) {
    found->second->on_async_event(facts->type);
  }
}

}  // namespace diwarp::compat
