// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/impairment_text.h"

#include <cctype>
#include <chrono>
#include <cstdlib>

namespace diwarp::llp {
namespace {

constexpr double kMinute = 60e6;  // microseconds
constexpr double kDepths = 1 << 20;
constexpr double kExactIntegers =
    9007199254740992.0;  // 2^53: whole numbers below are exact in a double

struct Field {
  std::string_view name;
  double most;
  void (*set)(Impairment&, double);
};

Duration microseconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(value));
}

constexpr Field kFields[] = {
    {"seed", kExactIntegers, [](Impairment& it, double v) { it.seed = static_cast<uint64_t>(v); }},
    {"drop", 1, [](Impairment& it, double v) { it.drop = v; }},
    {"corrupt", 1, [](Impairment& it, double v) { it.corrupt = v; }},
    {"truncate", 1, [](Impairment& it, double v) { it.truncate = v; }},
    {"duplicate", 1, [](Impairment& it, double v) { it.duplicate = v; }},
    {"reorder", 1, [](Impairment& it, double v) { it.reorder = v; }},
    {"reorder_depth", kDepths,
     [](Impairment& it, double v) { it.reorder_depth = static_cast<uint32_t>(v); }},
    {"delay", kMinute, [](Impairment& it, double v) { it.delay = microseconds(v); }},
    {"jitter", kMinute, [](Impairment& it, double v) { it.jitter = microseconds(v); }},
    {"queue_limit", kDepths,
     [](Impairment& it, double v) { it.queue_limit = static_cast<size_t>(v); }},
    {"every", kExactIntegers,
     [](Impairment& it, double v) { it.drop_if = drop_every(static_cast<uint64_t>(v)); }},
};

const Field* find_field(std::string_view name) {
  for (const Field& field : kFields)
    if (field.name == name) return &field;
  return nullptr;
}

std::string names() {
  std::string all;
  for (const Field& field : kFields) all.append(all.empty() ? "" : ", ").append(field.name);
  return all;
}

std::optional<double> number(const std::string& text, double most) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0)
    return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  const bool inside = *end == '\0' && value <= most;  // a NaN is not
  return inside ? std::optional(value) : std::nullopt;
}

/// "name=number"; false, and the reason, if it is something else.
bool apply(std::string_view text, Impairment& impairment, std::string& why_not) {
  const size_t split = text.find('=');
  const Field* const field = find_field(text.substr(0, split));
  if (field == nullptr || split == std::string_view::npos) {
    why_not = "\"" + std::string(text) + "\" is not NAME=NUMBER with one of the names " + names();
    return false;
  }
  const auto value = number(std::string(text.substr(split + 1)), field->most);
  if (!value) {
    why_not = std::string(field->name) + " needs a number from 0 to " +
              std::to_string(static_cast<uint64_t>(field->most));
    return false;
  }
  field->set(impairment, *value);
  return true;
}

}  // namespace

std::optional<Impairment> parse_impairment(std::string_view text, std::string& why_not) {
  Impairment impairment;
  while (true) {
    const size_t comma = text.find(',');
    if (!apply(text.substr(0, comma), impairment, why_not)) return std::nullopt;
    if (comma == std::string_view::npos) return impairment;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace diwarp::llp
