// SPDX-License-Identifier: Apache-2.0
#include "egress.h"

#include <algorithm>

namespace network {

bool Egress::happens(double probability) {
  // A number is drawn whatever the probability, so that fates of one kind do not shift the others.
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

std::optional<Time> Egress::through(size_t bytes, Time now) {
  if (impairment_.bits_per_second == 0) return now;
  while (!ends_.empty() && ends_.front() <= now) ends_.pop_front();
  if (ends_.size() >= impairment_.queue) return std::nullopt;
  const Time begins = ends_.empty() ? now : ends_.back();
  const uint64_t bits = uint64_t{bytes} * 8;
  ends_.push_back(begins + Time(bits * 1'000'000'000 / impairment_.bits_per_second));
  return ends_.back();
}

void Egress::schedule(const Frame& frame, Time leaves) {
  waiting_.push({.leaves = leaves, .number = number_++, .frame = frame});
}

Fate Egress::offer(const Frame& frame, const Packet& packet, Time now) {
  if (!packet.traffic()) {
    schedule(frame, now);
    return Fate::passed;
  }
  const bool lost = happens(impairment_.loss), late = happens(impairment_.reorder);
  if (lost) return Fate::lost;
  const std::optional<Time> leaves = through(frame.size(), now);
  if (!leaves) return Fate::overflowed;
  schedule(frame, *leaves + impairment_.delay + (late ? impairment_.lateness : Time{0}));
  return late ? Fate::late : Fate::passed;
}

std::optional<Frame> Egress::take(Time now) {
  if (waiting_.empty() || waiting_.top().leaves > now) return std::nullopt;
  Frame frame = waiting_.top().frame;
  waiting_.pop();
  return frame;
}

std::optional<Time> Egress::next() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.top().leaves;
}

}  // namespace network
