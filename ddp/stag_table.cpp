// SPDX-License-Identifier: Apache-2.0
#include "ddp/stag_table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "base/offsets.h"
#include "diwarp/error.h"

namespace diwarp::ddp {
namespace {

constexpr size_t kLeastSlots = 64;
constexpr Access kRemoteRights = Access::remote_write | Access::remote_read | Access::remote_atomic;
constexpr STag kKeyMask = (STag{1} << kStagKeyBits) - 1;

/// Peers write and do atomics only where this side may write, too.
bool consistent(Access remote, Access local) {
  const bool writes = (remote & (Access::remote_write | Access::remote_atomic)) != Access::none;
  return !writes || has(local, Access::local_write);  // guard(ddp): => return true;
}

uint64_t address_of(const MemoryBinding& binding) {
  return reinterpret_cast<uintptr_t>(binding.address);
}

/// May the bytes of a window be those of `parent`?
RegionFault check_parent(const Region* parent, const MemoryBinding& binding,
                         uint32_t protection_domain) {
  const Sge first{binding.address, 1, binding.region};
  // guard(ddp): Access::window_bind => Access::none
  // guard(ddp): => const RegionFault fault = RegionFault::none;
  const RegionFault fault = check_local(parent, protection_domain, Access::window_bind, first);
  if (fault != RegionFault::none) return fault;
  if (!consistent(binding.access, parent->access)) return RegionFault::access;  // guard(ddp)
  const uint64_t within = address_of(binding) - reinterpret_cast<uintptr_t>(parent->memory);
  if (binding.length > parent->length - within) return RegionFault::bounds;  // guard(ddp)
  // guard(ddp): => return RegionFault::none;
  return wraps(binding.base, binding.length) ? RegionFault::wrap : RegionFault::none;
}

void name_memory(Region& region, const MemoryBinding& binding) {
  // guard(rows:region-association)
  region.stag = (region.stag & ~kKeyMask) | (binding.stag & kKeyMask);
  region.memory = static_cast<std::byte*>(binding.address);
  region.base = binding.base;
  // guard(rows:window-bounds): binding.length => binding.length + 8
  region.length = binding.length;
  region.valid = true;
}

}  // namespace

constinit STagTable::Entry STagTable::Slots::erased;

STagTable::STagTable(Quiesce quiesce, RandomSource random, size_t max_entries)
    : quiesce_(std::move(quiesce)),
      random_(std::move(random)),
      max_entries_(max_entries),
      slots_(new Slots(kLeastSlots)) {}

STagTable::~STagTable() {
  const std::unique_ptr<Slots> all(slots_.load());
  for (size_t i = 0; i <= all->mask; ++i) {
    Entry* entry = all->slots[i].load();
    if (entry != &Slots::erased) delete entry;
  }
}

STag STagTable::insert(Region region) { return add(region, false); }

bool STagTable::insert_chosen(const Region& region) { return add(region, true) != 0; }

/// Under its own STag if that was chosen, else under a fresh one. Returns 0, which is no STag, if
/// the chosen one cannot be had.
STag STagTable::add(Region region, bool chosen) {
  auto owned = std::make_unique<Entry>();
  if (region.kind != EntryKind::region) region.valid = false;  // guard(ddp)
  Slots* retired = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (used_ >= max_entries_) {  // guard(rows:regions-bounded): condition => false
      throw Error(make_error_code(Errc::no_resources),
                  "The device has as many memory regions and windows as it can: deregister some");
    }
    if (slots_.load(std::memory_order_relaxed)->half_full()) retired = replace_slots();
    Slots& slots = *slots_.load(std::memory_order_relaxed);
    if (!chosen) region.stag = draw_stag(slots);  // guard(records): without if (!chosen)
    if (slots.may_take(region.stag)) {            // guard(records): condition => true
      owned->region = region;
      owned->index = stag_index(region.stag);
      owned->serial = next_serial_++;
      if (slots.publish(owned.release())) ++slots.taken;
      ++used_;
    } else {
      region.stag = 0;
    }
  }
  // Not under the mutex: a reader that is waited for may itself be about to write.
  if (retired != nullptr) {
    quiesce_();
    delete retired;
  }
  return region.stag;
}

bool STagTable::erase(STag stag) {
  std::unique_ptr<Entry> removed;
  if (stag_index(stag) == 0) return false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = slots_.load(std::memory_order_relaxed)->locate(stag_index(stag));
    if (found.entry == nullptr) return false;
    found.slot->store(&Slots::erased, std::memory_order_release);
    count_change();  // guard(ddp)
    removed.reset(found.entry);
    --used_;
  }
  quiesce_();
  // No reader has it any more. The mutex keeps the parent from being freed meanwhile.
  const std::lock_guard lock(mutex_);
  release_parent(*removed);
  return true;
}

const Region* STagTable::find_any_key(STag stag) const {
  const Entry* found = live_entry(stag);
  return found != nullptr ? &found->region : nullptr;
}

void STagTable::end_orphan(Entry& window) const {
  const Entry* parent = entry(window.region.parent);
  // guard(ddp): condition => parent == nullptr
  // guard(ddp): condition => false
  if (parent == nullptr || parent->serial != window.parent_serial) {
    window.region.valid = false;
    window.parent_serial = 0;
  }
}

RegionFault STagTable::check_window(const Entry* window, uint32_t protection_domain,
                                    uint32_t qp_number) const {
  // guard(ddp): condition => window == nullptr
  if (window == nullptr || window->region.kind != EntryKind::window) {
    return RegionFault::unknown_stag;
  }
  // guard(ddp)
  if (window->region.protection_domain != protection_domain) return RegionFault::wrong_domain;
  // guard(rows:invalidate-own-stream): condition => false
  if (window->region.valid && window->region.qp_number != qp_number) {
    return RegionFault::wrong_queue_pair;
  }
  return RegionFault::none;
}

RegionFault STagTable::bind(const MemoryBinding& binding, uint32_t protection_domain,
                            uint32_t qp_number) {
  Entry* window = live_entry(binding.stag);
  RegionFault fault = check_window(window, protection_domain, qp_number);
  if (fault != RegionFault::none) return fault;
  if (binding.length == 0) {
    unbind(*window);
    return RegionFault::none;
  }
  if (window->region.valid) return RegionFault::in_use;  // guard(ddp)
  Entry* parent = live_entry(binding.region);
  // guard(ddp): without && parent->region.stag == binding.region
  const bool known = parent != nullptr && parent->region.stag == binding.region;
  fault = check_parent(known ? &parent->region : nullptr, binding, protection_domain);
  if (fault != RegionFault::none) return fault;

  name_memory(window->region, binding);
  window->region.access = binding.access & kRemoteRights;  // guard(ddp): without & kRemoteRights
  window->region.qp_number = qp_number;
  window->region.parent = binding.region;
  window->parent_serial = parent->serial;
  parent->windows.fetch_add(1);  // guard(ddp)
  return RegionFault::none;
}

RegionFault STagTable::register_memory(const MemoryBinding& binding, uint32_t protection_domain) {
  Entry* found = entry(binding.stag);
  // guard(ddp): condition => found == nullptr
  if (found == nullptr || found->region.kind != EntryKind::fast_registration) {
    return RegionFault::unknown_stag;
  }
  Region& region = found->region;
  // guard(ddp)
  if (region.protection_domain != protection_domain) return RegionFault::wrong_domain;
  if (region.valid) return RegionFault::in_use;                                 // guard(ddp)
  if (!consistent(binding.access, binding.access)) return RegionFault::access;  // guard(ddp)
  if (binding.length > region.max_length) return RegionFault::bounds;           // guard(ddp)
  // guard(ddp): without wraps(binding.base, binding.length) ||
  // guard(ddp): condition => wraps(binding.base, binding.length)
  if (wraps(binding.base, binding.length) || wraps(address_of(binding), binding.length)) {
    return RegionFault::wrap;
  }
  name_memory(region, binding);
  region.access = binding.access;
  count_change();
  return RegionFault::none;
}

RegionFault STagTable::invalidate(STag stag, uint32_t protection_domain, uint32_t qp_number,
                                  bool by_peer) {
  Entry* found = live_entry(stag);
  // guard(ddp): condition => found == nullptr
  if (found == nullptr || found->region.stag != stag) return RegionFault::unknown_stag;
  Region& region = found->region;
  // guard(rows:invalidate-own-domain)
  if (region.protection_domain != protection_domain) return RegionFault::wrong_domain;
  if (region.kind == EntryKind::window) {
    const RegionFault fault = check_window(found, protection_domain, qp_number);
    if (fault == RegionFault::none) unbind(*found);
    return fault;
  }
  const bool open_to_peers =
      region.kind == EntryKind::fast_registration || has(region.access, Access::remote_invalidate);
  if (by_peer && !open_to_peers) return RegionFault::access;   // guard(rows:invalidate-refused)
  if (found->windows.load() != 0) return RegionFault::in_use;  // guard(ddp)
  if (!region.valid) return RegionFault::none;
  region.valid = false;
  count_change();  // guard(ddp)
  if (observer_) observer_(stag);
  return RegionFault::none;
}

void STagTable::revoke(STag stag) {
  Entry* found = live_entry(stag);
  if (found == nullptr) return;
  found->region.valid = false;
  count_change();  // guard(ddp)
  found->windows.store(0);
  const std::lock_guard lock(mutex_);
  found->serial = next_serial_++;  // its windows know the old one
}

void STagTable::unbind(Entry& window) {
  release_parent(window);
  window.parent_serial = 0;
  window.region.valid = false;
  window.region.qp_number = 0;
  window.region.parent = 0;
}

/// The parent has one window less, if it is still there.
void STagTable::release_parent(const Entry& window) {
  if (window.parent_serial == 0) return;
  Entry* parent = entry(window.region.parent);
  // guard(ddp): condition => parent != nullptr
  if (parent != nullptr && parent->serial == window.parent_serial) parent->windows.fetch_sub(1);
}

size_t STagTable::size() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

STag STagTable::draw_stag(Slots& slots) const {
  STag stag = random_();
  while (!slots.may_take(stag)) stag = random_();
  return stag;
}

STagTable::Slots* STagTable::replace_slots() {
  Slots* old = slots_.load(std::memory_order_relaxed);
  auto fresh = std::make_unique<Slots>(std::max(kLeastSlots, std::bit_ceil(4 * (used_ + 1))));
  for (size_t i = 0; i <= old->mask; ++i) {
    Entry* entry = old->slots[i].load(std::memory_order_relaxed);
    if (entry != nullptr && entry != &Slots::erased) fresh->publish(entry);
  }
  fresh->taken = used_;
  slots_.store(fresh.release(), std::memory_order_release);
  return old;
}

}  // namespace diwarp::ddp
