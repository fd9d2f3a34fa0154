// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <diwarp/verbs.h>

#include "support/catch.h"
#include "support/child.h"

/// The devices that the contract is checked on, and the waits of its cases. The cases see the
/// installed headers alone, and rest on nothing but what these promise.
namespace diwarp::contract {

using namespace std::chrono_literals;
using test::says_device_gone;

/// No wait for what must happen lasts longer.
inline constexpr Duration kPatience = 30s;
/// A wait for what must not happen.
inline constexpr Duration kMoment = 50ms;

inline std::string from_environment(const char* variable, const std::string& otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

/// The device under test: an address of this host unless DIWARP_CONTRACT_DEVICE names another.
inline Device open_device() {
  return Device::open(from_environment("DIWARP_CONTRACT_DEVICE", "127.0.0.1"));
}
/// The device of the other side: a second one of the same name, unless
/// DIWARP_CONTRACT_PEER_DEVICE names another.
inline Device open_peer() {
  const std::string own = from_environment("DIWARP_CONTRACT_DEVICE", "127.0.0.1");
  return Device::open(from_environment("DIWARP_CONTRACT_PEER_DEVICE", own));
}

/// Tells CTest, and scripts that compare lists of promises, that this case is skipped.
inline void tell_skipped(std::string_view reason) {
  const std::string promise(Catch::getResultCapture().getCurrentTestName());
  std::cout << "SKIPPED: " << reason << ": " << promise << std::endl;
}

/// False where the device lacks one of these capabilities, after telling so. The case then returns:
///
///     if (!needs(device, Capability::atomics)) return;
[[nodiscard]] inline bool needs(const Device& device, Capability wanted) {
  const Capability own = device.query().capabilities;
  for (const CapabilityName& one : kCapabilities) {
    if (!has(wanted, one.capability) || has(own, one.capability)) continue;
    tell_skipped(one.name);
    return false;
  }
  return true;
}

/// The same of both devices.
[[nodiscard]] inline bool needs(Capability wanted) {
  return needs(open_device(), wanted) && needs(open_peer(), wanted);
}

/// The code that a call is refused with; none where it is not.
template <class Call>
std::error_code refusal(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return {};
}

/// The next completion, which must come.
inline WorkCompletion next(CompletionQueue& cq) {
  const std::optional<WorkCompletion> completion = cq.wait(kPatience);
  REQUIRE(completion);
  return *completion;
}

/// The next completion, which must come and be one of success.
inline WorkCompletion next_good(CompletionQueue& cq) {
  const WorkCompletion completion = next(cq);
  INFO("wr_id " << completion.wr_id << " of " << to_string(completion.opcode));
  REQUIRE(to_string(completion.status) == to_string(WcStatus::success));
  return completion;
}

/// The next `count` completions, which must come.
inline std::vector<WorkCompletion> take(CompletionQueue& cq, size_t count) {
  std::vector<WorkCompletion> all;
  while (all.size() < count) all.push_back(next(cq));
  return all;
}

/// This status; another error where a device does not tell its errors apart.
inline void check_error(const WorkCompletion& completion, WcStatus status) {
  if (needs(Capability::exact_errors))
    CHECK(to_string(completion.status) == to_string(status));
  else
    CHECK(to_string(completion.status) != to_string(WcStatus::success));
}

/// The message had this STag invalidated, and its completion says so.
inline void check_told(const WorkCompletion& received, STag invalidated) {
  if (!needs(Capability::told_invalidations)) return;
  CHECK(received.invalidated);
  CHECK(received.invalidated_stag == invalidated);
}

/// The next event of this type; others before it are passed over.
inline AsyncEvent next_event(EventQueue& events, AsyncEventType wanted) {
  for (;;) {
    const std::optional<AsyncEvent> event = events.get_event(kPatience);
    INFO("no event " << to_string(wanted));
    REQUIRE(event);
    if (event->type == wanted) return *event;
  }
}

/// The next event of a queue pair whose connection ended with an error: its number. Where a device
/// does not tell errors apart, the event may be that of an end in order.
inline uint32_t next_end(EventQueue& events) {
  if (needs(Capability::exact_errors))
    return next_event(events, AsyncEventType::qp_fatal).qp_number;
  for (;;) {
    const std::optional<AsyncEvent> event = events.get_event(kPatience);
    REQUIRE(event);
    if (event->type == AsyncEventType::qp_fatal || event->type == AsyncEventType::peer_closed)
      return event->qp_number;
  }
}

}  // namespace diwarp::contract
