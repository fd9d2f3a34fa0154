// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace random_calls {

/// Where all choices come from: the same seed makes the same calls.
class Randomness {
 public:
  explicit Randomness(uint64_t seed) : source_(seed) {}

  uint64_t number() { return source_(); }
  /// From 0 to `end` - 1.
  size_t below(size_t end) { return static_cast<size_t>(source_() % end); }
  bool chance(unsigned percent) { return below(100) < percent; }

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  /// One of the pool, which has some.
  template <class T>
  T& one_of(std::vector<T>& pool) {
    return pool[below(pool.size())];
  }
  template <class T>
  const T& one_of(const std::vector<T>& pool) {
    return pool[below(pool.size())];
  }
  /// One of the pool, or now and then, and where there is none, null.
  template <class T>
  T* one_or_null(const std::vector<T*>& pool) {
    return pool.empty() || chance(3) ? nullptr : pool[below(pool.size())];
  }

 private:
  std::mt19937_64 source_;  // the standard says what it gives, on every system
};

}  // namespace random_calls
