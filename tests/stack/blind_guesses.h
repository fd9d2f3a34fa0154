// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace diwarp::test {

/// A field that a blind datagram has to be right about. The guesses differ in its low bits alone.
struct GuessedField {
  uint64_t right = 0;
  int bits = 0;

  uint64_t with_low(uint64_t low) const { return right >> bits << bits | low; }
};

/// Calls visit(values) for all guesses at the fields but the one that is right about each. The odds
/// of a blind datagram follow: each field has more bits on the wire.
template <size_t Count, class Visit>
void for_each_wrong_guess(const std::array<GuessedField, Count>& fields, Visit visit) {
  int bits = 0;
  for (const GuessedField& field : fields) bits += field.bits;
  for (uint64_t guess = 0; guess < uint64_t{1} << bits; ++guess) {
    std::array<uint64_t, Count> values{};
    uint64_t left = guess;
    bool right = true;
    for (size_t i = 0; i < Count; ++i) {
      values[i] = fields[i].with_low(left & ((uint64_t{1} << fields[i].bits) - 1));
      left >>= fields[i].bits;
      right = right && values[i] == fields[i].right;
    }
    if (!right) visit(values);
  }
}

}  // namespace diwarp::test
