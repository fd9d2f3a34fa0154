// SPDX-License-Identifier: Apache-2.0
#include "ddp/stag_table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>
#include <utility>

namespace diwarp::ddp {
namespace {

/// Whether `length` bytes at `within` lie inside the first `limit`; safe against 64-bit wrap.
bool fits(uint64_t within, uint64_t length, uint64_t limit) {
  return within <= limit && length <= limit - within;
}

RegionFault check_rights(const Region* region, uint32_t protection_domain, Access want) {
  if (region == nullptr) return RegionFault::unknown_stag;
  if (region->protection_domain != protection_domain) return RegionFault::wrong_domain;
  return grants(region->access, want) ? RegionFault::none : RegionFault::access;
}

constexpr size_t kLeastSlots = 64;

/// Stands where a region was erased, so that probing goes on. Its STag, 0, is never looked for.
constinit Region erased;

}  // namespace

RegionFault check_tagged(const Region* region, uint32_t protection_domain, Access want,
                         uint64_t offset, uint64_t length) {
  const RegionFault fault = check_rights(region, protection_domain, want);
  if (fault != RegionFault::none) return fault;
  if (offset < region->base || !fits(offset - region->base, length, region->length)) {
    return RegionFault::bounds;
  }
  const uint64_t last = offset + length - (length != 0 ? 1 : 0);
  return last < offset ? RegionFault::wrap : RegionFault::none;
}

RegionFault check_local(const Region* region, uint32_t protection_domain, Access want,
                        const Sge& sge) {
  if (sge.length == 0) return RegionFault::none;
  const RegionFault fault = check_rights(region, protection_domain, want);
  if (fault != RegionFault::none) return fault;
  const auto begin = reinterpret_cast<uintptr_t>(region->memory);
  const auto address = reinterpret_cast<uintptr_t>(sge.address);
  const bool inside = address >= begin && fits(address - begin, sge.length, region->length);
  return inside ? RegionFault::none : RegionFault::bounds;
}

/// Open addressing with linear probing. At most half of the slots are ever taken (by regions or by
/// `erased`), so each probe ends at an empty one. STags are random and need no hash.
struct STagTable::Slots {
  explicit Slots(size_t capacity)
      : mask(capacity - 1), entries(new std::atomic<Region*>[capacity]()) {
    assert(std::has_single_bit(capacity));
  }

  struct Found {
    std::atomic<Region*>* entry;
    Region* region;
  };

  std::atomic<Region*>& entry(size_t probe) { return entries[probe & mask]; }

  /// Where `stag` stands and its region as read at that moment: null if the search met an empty
  /// slot.
  Found locate(STag stag) {
    for (size_t probe = stag;; ++probe) {
      Region* region = entry(probe).load(std::memory_order_acquire);
      if (region == nullptr || region->stag == stag) return {&entry(probe), region};
    }
  }

  /// Publishes a region whose STag is not there. True if it took an empty slot.
  bool publish(Region* region) {
    for (size_t probe = region->stag;; ++probe) {
      const Region* before = entry(probe).load(std::memory_order_relaxed);
      if (before != nullptr && before != &erased) continue;
      entry(probe).store(region, std::memory_order_release);
      return before == nullptr;
    }
  }

  bool crowded() const { return 2 * (taken + 1) > mask + 1; }

  const size_t mask;
  size_t taken = 0;  // regions and `erased`; writers only
  std::unique_ptr<std::atomic<Region*>[]> entries;
};

STagTable::STagTable(Quiesce quiesce, RandomSource random)
    : quiesce_(std::move(quiesce)), random_(std::move(random)), slots_(new Slots(kLeastSlots)) {}

STagTable::~STagTable() {
  const std::unique_ptr<Slots> slots(slots_.load());
  for (size_t i = 0; i <= slots->mask; ++i) {
    Region* region = slots->entries[i].load();
    if (region != &erased) delete region;
  }
}

STag STagTable::insert(Region region) {
  auto owned = std::make_unique<Region>(region);
  Slots* retired = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (slots_.load(std::memory_order_relaxed)->crowded()) retired = replace_slots();
    Slots& slots = *slots_.load(std::memory_order_relaxed);
    owned->stag = region.stag = draw_stag(slots);
    if (slots.publish(owned.release())) ++slots.taken;
    ++used_;
  }
  // Not under the mutex: a reader that is waited for may itself be about to write.
  if (retired != nullptr) {
    quiesce_();
    delete retired;
  }
  return region.stag;
}

bool STagTable::erase(STag stag) {
  std::unique_ptr<Region> removed;
  if (stag == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.load(std::memory_order_relaxed)->locate(stag);
    if (found.region == nullptr) return false;
    found.entry->store(&erased, std::memory_order_release);
    removed.reset(found.region);
    --used_;
  }
  quiesce_();
  return true;
}

const Region* STagTable::find(STag stag) const {
  if (stag == 0) return nullptr;
  return slots_.load(std::memory_order_acquire)->locate(stag).region;
}

size_t STagTable::size() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

STag STagTable::draw_stag(Slots& slots) const {
  STag stag = random_();
  while (stag == 0 || slots.locate(stag).region != nullptr) stag = random_();
  return stag;
}

STagTable::Slots* STagTable::replace_slots() {
  Slots* old = slots_.load(std::memory_order_relaxed);
  auto fresh = std::make_unique<Slots>(std::max(kLeastSlots, std::bit_ceil(4 * (used_ + 1))));
  for (size_t i = 0; i <= old->mask; ++i) {
    Region* region = old->entries[i].load(std::memory_order_relaxed);
    if (region != nullptr && region != &erased) fresh->publish(region);
  }
  fresh->taken = used_;
  slots_.store(fresh.release(), std::memory_order_release);
  return old;
}

}  // namespace diwarp::ddp
