// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/meeting_numbers.h"

#include <algorithm>

namespace diwarp::compat {
namespace {

constexpr unsigned kIndexShift = 16;

}  // namespace

uint8_t MeetingIndices::take() {
  for (size_t tries = 0; tries < used_.size(); ++tries)
    if (!used_[++last_]) {
      used_[last_] = true;
      return last_;
    }
  return 0;
}

uint32_t MeetingNumbers::take() {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0;; ++i) {
    if (i == ports_.size()) ports_.push_back(std::make_unique<Port>(device_));
    if (const uint32_t index = ports_[i]->indices.take(); index != 0)
      return (index << kIndexShift) | ports_[i]->number();
  }
}

void MeetingNumbers::give_back(uint32_t number) {
  if (!process_.is_own()) return;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(ports_.begin(), ports_.end(), [number](const auto& port) {
    return port->number() == port_of(number);
  });
  if (found != ports_.end())
    (*found)->indices.give_back(static_cast<uint8_t>(number >> kIndexShift));
}

}  // namespace diwarp::compat
