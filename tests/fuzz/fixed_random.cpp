// SPDX-License-Identifier: Apache-2.0
// Stands in for base/src/random.cpp: the linker takes no object of an archive whose symbols it has.
#include "fuzz/fixed_random.h"

#include <algorithm>
#include <mutex>
#include <span>

#include "base/random.h"

namespace diwarp {
namespace {

constexpr uint64_t kSeed = 0x6469776172700001;

std::mutex mutex;  // guards the sequence
Random sequence(kSeed);

}  // namespace

void system_random(Bytes target) {
  const std::lock_guard lock(mutex);
  std::generate(target.begin(), target.end(),
                [] { return static_cast<std::byte>(sequence.next()); });
}

uint32_t system_random_u32() {
  uint32_t value = 0;
  system_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void fuzz::restart_random() {
  const std::lock_guard lock(mutex);
  sequence = Random(kSeed);
}

}  // namespace diwarp
