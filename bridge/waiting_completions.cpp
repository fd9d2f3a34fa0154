// SPDX-License-Identifier: Apache-2.0
#include "bridge/waiting_completions.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "bridge/work_table.h"

namespace diwarp::bridge {

void WaitingCompletions::reserve(size_t places) {
  drop_taken();
  all_.reserve(places + all_.size());
}

WorkCompletion& WaitingCompletions::add(WorkTable& table, uint32_t slot) noexcept {
  if (all_.size() == all_.capacity()) drop_taken();
  assert(all_.size() < all_.capacity());
  return all_.emplace_back(Waiting{.completion = {}, .table = &table, .slot = slot}).completion;
}

size_t WaitingCompletions::take(std::span<WorkCompletion> completions) {
  size_t count = 0;
  while (count < completions.size() && !empty()) {
    Waiting& oldest = all_[first_++];
    completions[count++] = std::move(oldest.completion);
    if (oldest.table != nullptr) oldest.table->release(oldest.slot);
  }
  if (empty()) drop_taken();
  return count;
}

void WaitingCompletions::forget(const WorkTable& table, bool keeps, size_t most) {
  drop_taken();
  for (Waiting& one : all_) {
    if (one.table != &table) continue;
    one.table->release(one.slot);
    if (keeps) one.table = nullptr;
  }
  if (!keeps) std::erase_if(all_, [&](const Waiting& one) { return one.table == &table; });
  const size_t all = orphans();
  size_t excess = all > most ? all - most : 0;
  std::erase_if(all_, [&excess](const Waiting& one) {
    if (one.table != nullptr || excess == 0) return false;
    --excess;
    return true;
  });
}

void WaitingCompletions::drop_taken() {
  all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(first_));
  first_ = 0;
}

size_t WaitingCompletions::orphans() const {
  return static_cast<size_t>(std::ranges::count(all_, nullptr, &Waiting::table));
}

}  // namespace diwarp::bridge
