// SPDX-License-Identifier: Apache-2.0
#include "scenario.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace diwarp::explore {

namespace {

// In datagrams of kSegment bytes, of which headers take 43 to 91.
constexpr std::array<size_t, 5> kLengths{0, 40, 200, 300, 400};

constexpr std::array<std::string_view, 11> kEventNames{"gone", "invalidate", "source",  "reset",
                                                       "anew", "pause",      "narrow",  "untold",
                                                       "hole", "post",       "receives"};
constexpr size_t kOnMenus = 9;
constexpr std::array kOfBothEnds{EventKind::pause, EventKind::narrow, EventKind::untold,
                                 EventKind::hole};

std::string_view take_until(std::string_view& text, char end) {
  const size_t length = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

[[noreturn]] void refuse(std::string_view part, const char* message) {
  throw std::invalid_argument("'" + std::string(part) + "': " + message);
}

OperationKind kind_of(std::string_view text) {
  switch (text.empty() ? '\0' : text.front()) {
    case 's':
      return OperationKind::send;
    case 'w':
      return OperationKind::record;
    case 'r':
      return OperationKind::read;
    default:
      refuse(text, "an operation begins with s, w or r");
  }
}

Operation parse_operation(std::string_view text) {
  Operation operation{.kind = kind_of(text)};
  const std::string_view whole = text;
  if (text.size() < 2 || text[1] < '0' || text[1] > '4')
    refuse(whole, "an operation has 0 to 4 datagrams");
  operation.datagrams = static_cast<uint32_t>(text[1] - '0');
  for (const char letter : text.substr(2)) {
    const bool is_send = operation.kind == OperationKind::send;
    if (letter == '~')
      operation.later = true;
    else if (letter == 'k' && is_send)
      operation.flaw = Flaw::q_key;
    else if (letter == 'x' && !is_send)
      operation.flaw = Flaw::stag;
    else
      refuse(whole, "after the number come k (of a Send), x (of others) and ~");
  }
  return operation;
}

std::vector<Operation> parse_operations(std::string_view text) {
  std::vector<Operation> operations;
  while (!text.empty()) operations.push_back(parse_operation(take_until(text, ',')));
  return operations;
}

/// `name`=N. False where the word is another.
bool parse_number(std::string_view word, std::string_view name, uint32_t& value) {
  if (!word.starts_with(name) || word.substr(name.size(), 1) != "=") return false;
  const std::string_view digits = word.substr(name.size() + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size();
}

bool parse_flag(Scenario& scenario, std::string_view word) {
  const std::pair<std::string_view, bool*> flags[] = {{"late-receives", &scenario.late_receives},
                                                      {"cold", &scenario.cold},
                                                      {"short", &scenario.short_receives},
                                                      {"slow", &scenario.slow},
                                                      {"batch", &scenario.batch}};
  for (const auto& [name, flag] : flags)
    if (name == word) return *flag = true;
  return false;
}

void parse_word(Scenario& scenario, std::string_view word) {
  const auto event = std::find(kEventNames.begin(), kEventNames.begin() + kOnMenus, word);
  if (event != kEventNames.begin() + kOnMenus)
    return scenario.menu.push_back(static_cast<EventKind>(event - kEventNames.begin()));
  const bool known = parse_flag(scenario, word) || parse_number(word, "window", scenario.window) ||
                     parse_number(word, "buffer", scenario.buffer);
  if (!known) refuse(word, "no such event or option");
}

/// Whether the event can concern this operation.
bool concerns(EventKind kind, const Operation& operation) {
  const bool names_memory = operation.kind != OperationKind::send && operation.flaw == Flaw::none;
  if (kind == EventKind::gone || kind == EventKind::invalidate) return names_memory;
  return kind == EventKind::source && operation.datagrams != 0;
}

}  // namespace

size_t Operation::length() const { return kLengths[datagrams]; }

size_t Scenario::receive_bytes() const { return kLengths[short_receives ? 1 : 3]; }

Scenario Scenario::parse(std::string_view text) {
  Scenario scenario{.name = std::string(text)};
  std::string_view operations = take_until(text, ' ');
  if (operations.find('/') == operations.npos) refuse(operations, "operations are written A/B");
  scenario.operations[0] = parse_operations(take_until(operations, '/'));
  scenario.operations[1] = parse_operations(operations);
  while (!text.empty()) parse_word(scenario, take_until(text, ' '));
  return scenario;
}

std::vector<Event> Scenario::events() const {
  std::vector<Event> events;
  for (size_t side = 0; side < kSides; ++side) {
    if (late_receives) events.push_back({EventKind::receives, side});
    for (size_t i = 0; i < operations[side].size(); ++i) {
      if (operations[side][i].later) events.push_back({EventKind::post, side, i});
      for (const EventKind kind : menu)
        if (concerns(kind, operations[side][i])) events.push_back({kind, side, i});
    }
    for (const EventKind kind : {EventKind::reset, EventKind::anew})
      if (std::ranges::count(menu, kind) != 0) events.push_back({kind, side});
  }
  for (const EventKind kind : kOfBothEnds)
    if (std::ranges::count(menu, kind) != 0) events.push_back({kind});
  return events;
}

std::string Event::to_string() const {
  std::string text(kEventNames[static_cast<size_t>(kind)]);
  if (std::ranges::count(kOfBothEnds, kind) != 0) return text;
  text += ' ';
  text += name_of_side(side);
  const bool of_side =
      kind == EventKind::reset || kind == EventKind::anew || kind == EventKind::receives;
  return of_side ? text : text + std::to_string(operation + 1);
}

}  // namespace diwarp::explore
