// SPDX-License-Identifier: Apache-2.0
#include "switch/egress.h"

#include <algorithm>

namespace network {

// A number is drawn whatever the probability, so that fates of one kind do not shift the others.
double Egress::draw() { return static_cast<double>(random_() >> 11) * 0x1p-53; }

bool Egress::loses_next() {
  ++offered_;
  const double drawn = draw();
  const bool counted = impairment_.every != 0 && offered_ % impairment_.every == 0;
  if (impairment_.burst <= 1) return drawn < impairment_.loss || counted;
  // Of all packets the share `loss` meets the lossy state, which lasts `burst` packets.
  const double leave = 1 / impairment_.burst;
  const double enter = leave * impairment_.loss / std::max(1 - impairment_.loss, 0x1p-53);
  in_burst_ = in_burst_ ? drawn >= leave : drawn < enter;
  return in_burst_ || counted;
}

Frame Egress::corrupted(Frame frame, const Packet& packet) {
  const size_t payload = packet.payload.size();
  const auto place = static_cast<size_t>(draw() * 8 * static_cast<double>(payload));
  if (payload == 0) return frame;
  const size_t from = frame.size() - std::min(frame.size(), payload);
  frame[from + place / 8] ^= static_cast<uint8_t>(1U << (place % 8));
  return frame;
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
  const bool lost = loses_next(), late = happens(impairment_.reorder);
  const bool twice = happens(impairment_.duplicate), changed = happens(impairment_.corrupt);
  const auto jitter =
      Time(static_cast<int64_t>(draw() * static_cast<double>(impairment_.jitter.count())));
  if (lost) return Fate::lost;
  const std::optional<Time> leaves = through(frame.size(), now);
  if (!leaves) return Fate::overflowed;
  const Time then = *leaves + impairment_.delay + jitter + (late ? impairment_.lateness : Time{0});
  schedule(changed ? corrupted(frame, packet) : frame, then);
  if (twice) schedule(frame, then);
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
