// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>

#include "explore/run.h"
#include "explore/scenario.h"
#include "explore/testbed.h"
#include "fuzz/fixed_random.h"
#include "fuzz/input.h"

/// RD: the explorer's runs (tests/explore), but of any scenario, deeper and with more faults than
/// all of which could be played. The input says the scenario, then what becomes of each datagram
/// and what happens between them. The demands of the explorer's ledger must hold.

using namespace diwarp;
using namespace diwarp::fuzz;
using explore::Flaw;
using explore::Operation;
using explore::OperationKind;
using explore::Scenario;

namespace {

constexpr uint32_t kDatagrams = 64;  // that are asked about
/// Faults and events of a run. So many losses in a row, and a pause, are no reason to give up a
/// peer.
constexpr uint32_t kMostFaults = 10;
constexpr uint32_t kMostOperations = 3;
/// Of EventKind, all that a menu may have.
constexpr auto kEvents = static_cast<uint32_t>(explore::EventKind::post);

/// As many bytes stand for 0 as for all other answers.
class InputChoices final : public explore::Choices {
 public:
  explicit InputChoices(Input input) : input_(input) {}
  uint32_t choose(uint32_t alternatives) override {
    const uint32_t byte = faults_ < kMostFaults ? input_.u8() : 0;
    const uint32_t answer = byte < 128 ? 0 : (byte - 128) % alternatives;
    faults_ += answer != 0;
    return answer;
  }

 private:
  Input input_;
  uint32_t faults_ = 0;
};

// --- Scenarios.

Flaw flaw_of(OperationKind kind) { return kind == OperationKind::send ? Flaw::q_key : Flaw::stag; }

/// A segment without payload names its STag in vain: the ledger does not say what comes of it.
Operation operation_of(uint8_t byte) {
  Operation operation{.kind = static_cast<OperationKind>(byte % 3), .datagrams = byte / 3u % 5};
  const bool may_be_flawed = operation.datagrams != 0 || operation.kind == OperationKind::send;
  if (may_be_flawed && (byte & 0xc0) == 0xc0) operation.flaw = flaw_of(operation.kind);
  operation.later = byte % 7 == 6;
  return operation;
}

/// The ledger tells operations apart by their contents: one Send of a side may be empty.
void add_operation(std::vector<Operation>& operations, Operation operation) {
  const auto is_empty_send = [](const Operation& one) {
    return one.kind == OperationKind::send && one.datagrams == 0;
  };
  if (is_empty_send(operation) && std::ranges::any_of(operations, is_empty_send))
    operation.datagrams = 1;
  operations.push_back(operation);
}

void add_menu(Scenario& scenario, uint16_t bits) {
  for (uint32_t i = 0; i < kEvents; ++i)
    if ((bits >> i & 1) != 0) scenario.menu.push_back(static_cast<explore::EventKind>(i));
}

Scenario scenario_of(Input& input) {
  Scenario scenario;
  const uint8_t bits = input.u8();
  scenario.late_receives = (bits & 1) != 0;
  scenario.cold = (bits & 2) != 0;
  scenario.short_receives = (bits & 4) != 0;
  scenario.slow = (bits & 8) != 0;
  scenario.batch = (bits & 16) != 0;
  scenario.window = 1 + (bits >> 5);
  scenario.buffer = input.flag() ? 1 << 20 : 2048;
  add_menu(scenario, input.u16());
  for (auto& operations : scenario.operations)
    for (uint32_t left = input.below(kMostOperations + 1); left > 0; --left)
      add_operation(operations, operation_of(input.u8()));
  return scenario;
}

// --- Runs.

/// An exception is a violation as well.
explore::Outcome play(const Scenario& scenario, const Input& input, std::ostream* trace) try {
  restart_random();
  explore::Testbed bed;
  InputChoices choices(input);
  return explore::run(bed, scenario, {.datagrams = kDatagrams}, choices, trace);
} catch (const std::exception& thrown) {
  return {.violations = {thrown.what()}};
}

/// Once more, told of step by step.
[[noreturn]] void report(const Scenario& scenario, const Input& input) {
  const explore::Outcome outcome = play(scenario, input, &std::cerr);
  std::string messages;
  for (const std::string& one : outcome.violations) messages += one + "; ";
  fail(messages);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const Scenario scenario = scenario_of(input);
  if (!play(scenario, input, nullptr).violations.empty()) report(scenario, input);
  return 0;
}
