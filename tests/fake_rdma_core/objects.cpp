// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/objects.h"

#include <unordered_set>

namespace fake {
namespace {

std::mutex mutex;

/// Guarded by `mutex`, and leaked: what a program has not destroyed is no leak of its own.
std::unordered_set<const Counted*>& live() {
  static auto& all = *new std::unordered_set<const Counted*>;
  return all;
}

}  // namespace

int live_objects() {
  const std::lock_guard lock(mutex);
  return static_cast<int>(live().size());
}

Counted::Counted() {
  const std::lock_guard lock(mutex);
  live().insert(this);
}

Counted::~Counted() {
  const std::lock_guard lock(mutex);
  live().erase(this);
}

}  // namespace fake
