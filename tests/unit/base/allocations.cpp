// SPDX-License-Identifier: Apache-2.0
#include "unit/base/allocations.h"

#include "unit/base/failing_allocation.h"

#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> count{0};
std::atomic<size_t> held{0};
std::atomic<size_t> too_much{SIZE_MAX};

// Of FailingAllocation.
constexpr size_t kNone = SIZE_MAX;
thread_local size_t until_failure = kNone;
thread_local bool fails_lastingly = false;
thread_local bool has_failed = false;

bool fails_now() noexcept {
  if (until_failure == kNone) return false;
  if (until_failure != 0) {
    --until_failure;
    return false;
  }
  has_failed = true;
  if (!fails_lastingly) until_failure = kNone;
  return true;
}

void* take(size_t size) noexcept {
  if (size >= too_much.load(std::memory_order_relaxed) || fails_now()) return nullptr;
  count.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(size == 0 ? 1 : size);
  held.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void give(void* memory) noexcept {
  held.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

void* take_aligned(size_t size, std::align_val_t alignment) noexcept {
  if (size >= too_much.load(std::memory_order_relaxed) || fails_now()) return nullptr;
  const auto unit = static_cast<size_t>(alignment);
  void* memory = std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
  count.fetch_add(1, std::memory_order_relaxed);
  held.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace diwarp::test {
size_t allocations() { return count.load(std::memory_order_relaxed); }
size_t allocated_bytes() { return held.load(std::memory_order_relaxed); }
Starvation::Starvation(size_t bytes) { too_much = bytes; }
Starvation::~Starvation() { too_much = SIZE_MAX; }

FailingAllocation::FailingAllocation(size_t nth, bool lasting) {
  fails_lastingly = lasting;
  has_failed = false;
  until_failure = nth;
}
FailingAllocation::~FailingAllocation() { until_failure = kNone; }
bool FailingAllocation::happened() { return has_failed; }
}  // namespace diwarp::test

void* operator new(size_t size) { return or_throw(take(size)); }
void* operator new[](size_t size) { return or_throw(take(size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return take(size); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return take(size); }
void operator delete(void* memory) noexcept { give(memory); }
void operator delete[](void* memory) noexcept { give(memory); }
void operator delete(void* memory, size_t) noexcept { give(memory); }
void operator delete[](void* memory, size_t) noexcept { give(memory); }
void* operator new(size_t size, std::align_val_t alignment) {
  return or_throw(take_aligned(size, alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return or_throw(take_aligned(size, alignment));
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_aligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return take_aligned(size, alignment);
}
void operator delete(void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { give(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { give(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { give(memory); }
