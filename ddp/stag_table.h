// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "ddp/region.h"
#include "diwarp/types.h"

namespace diwarp::ddp {

/// The map from STags to regions, windows and fast registrations, shared by all engines of a
/// device.
///
/// Readers hold no lock; they hold the owner's quiescence section (the engine's baton). Writers
/// (insert, erase) take a mutex, unpublish, and call `quiesce`, which returns only when every
/// reader that may have seen the old state is done; only then is memory reused. `quiesce` is called
/// without the mutex, from insert(), insert_chosen() (when the table grows) and erase(); never call
/// these as a reader.
///
/// Entries change (bind, register, invalidate) with the baton alone. Writers look at nothing but an
/// entry's index, which never changes, until they have unpublished and quiesced. A window whose
/// parent was erased is found invalid from the moment the parent is unpublished: each find() of a
/// window looks for its parent.
class STagTable {
 public:
  using Quiesce = std::function<void()>;
  using RandomSource = std::function<uint32_t()>;

  /// More entries than this are refused, so that a fresh index is found in few draws.
  static constexpr size_t kMaxEntries = size_t{1} << 23;

  STagTable(Quiesce quiesce, RandomSource random, size_t max_entries = kMaxEntries);
  ~STagTable();
  STagTable(const STagTable&) = delete;
  STagTable& operator=(const STagTable&) = delete;

  /// Adds an entry under a fresh random STag (its index never 0), which is returned. `region.stag`
  /// is ignored; windows and fast registrations begin invalid. Throws std::system_error (ENOMEM)
  /// when the table is full.
  STag insert(Region region);

  /// The same under `region.stag`, a chosen one. False, and nothing is added, if its index
  /// is 0 or that of an entry.
  bool insert_chosen(const Region& region);

  /// Removes the entry with the STag's index, whatever its key is now; false if it is not there.
  /// When it returns no reader uses the entry, nor a window that was bound to it.
  bool erase(STag stag);

  /// The entry, valid or not, or null; null also where the key is not the entry's. With the baton;
  /// the pointer lives until the baton is given back. Entries are unpublished without the baton: an
  /// entry that was found once may not be found again a moment later. So its users keep the
  /// pointer, or look whether there still is one.
  const Region* find(STag stag) const {
    const Entry* found = live_entry(stag);
    // guard(ddp): without && found->region.stag == stag
    return found != nullptr && found->region.stag == stag ? &found->region : nullptr;
  }
  /// The same for an STag's owner: whatever the key is now.
  const Region* find_any_key(STag stag) const;

  /// How often an entry has gone, become invalid or become valid. While this stays as it is, what
  /// a region allowed it allows still; new entries do not count. Above 0. With the baton, as long
  /// as it is held: the entries that go are counted before their removal waits for readers.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }

  // With the baton. `protection_domain` and `qp_number` are of the queue pair that asks. With a
  // fault nothing has changed.

  /// Binds a window to memory inside a valid region or fast registration of the same protection
  /// domain that has window_bind, and local_write if peers shall write; gives it the new key. With
  /// length 0 the window is unbound instead.
  RegionFault bind(const MemoryBinding& binding, uint32_t protection_domain, uint32_t qp_number);

  /// Makes a fast registration name memory, under the new key.
  RegionFault register_memory(const MemoryBinding& binding, uint32_t protection_domain);

  /// Makes an STag invalid; one that is already stays so. A peer may do that to windows, fast
  /// registrations, and regions with remote_invalidate.
  RegionFault invalidate(STag stag, uint32_t protection_domain, uint32_t qp_number, bool by_peer);

  /// Makes a region invalid, and the windows that are bound to it. Asks nobody.
  void revoke(STag stag);
  /// With the baton, for each region that invalidate() made invalid. Set once, before any is.
  void observe_invalidations(std::function<void(STag)> observer) {
    observer_ = std::move(observer);
  }

  size_t size() const;

 private:
  struct Entry {
    Region region;
    uint32_t index = 0;                 // immutable while published, as is the serial
    uint64_t serial = 0;                // no other entry ever has it
    uint64_t parent_serial = 0;         // of a valid window's parent
    std::atomic<uint32_t> windows = 0;  // valid ones that are bound to this
  };

  /// Open addressing with linear probing. At most half of the slots are ever taken (by entries or
  /// by `erased`), so each probe ends at an empty one. Indices that were chosen may follow each
  /// other, so they are spread.
  struct Slots {
    explicit Slots(size_t capacity)
        : mask(capacity - 1), slots(new std::atomic<Entry*>[capacity]()) {
      assert(std::has_single_bit(capacity));
    }

    struct Found {
      std::atomic<Entry*>* slot;
      Entry* entry;
    };

    /// Stands where an entry was erased, so that probing goes on. Its index, 0, is never looked
    /// for.
    static Entry erased;

    std::atomic<Entry*>& slot(size_t probe) { return slots[probe & mask]; }
    static size_t first_probe(uint32_t index) { return index * uint64_t{0x9e3779b97f4a7c15} >> 32; }

    /// Where the entry of `index` stands and what was read there: null if the search met an empty
    /// slot.
    Found locate(uint32_t index) {
      for (size_t probe = first_probe(index);; ++probe) {
        Entry* entry = slot(probe).load(std::memory_order_acquire);
        if (entry == nullptr || entry->index == index) return {&slot(probe), entry};
      }
    }

    bool may_take(STag stag) {
      // guard(records): without stag_index(stag) != 0 &&
      // guard(records): => return stag_index(stag) != 0;
      // guard(ddp): without stag_index(stag) != 0 &&
      return stag_index(stag) != 0 && locate(stag_index(stag)).entry == nullptr;
    }

    /// Publishes an entry whose index is not there. True if it took an empty slot.
    bool publish(Entry* entry) {
      for (size_t probe = first_probe(entry->index);; ++probe) {
        const Entry* before = slot(probe).load(std::memory_order_relaxed);
        if (before != nullptr && before != &erased) continue;
        slot(probe).store(entry, std::memory_order_release);
        return before == nullptr;
      }
    }

    bool half_full() const { return 2 * (taken + 1) > mask + 1; }

    const size_t mask;
    size_t taken = 0;  // entries and `erased`; writers only
    std::unique_ptr<std::atomic<Entry*>[]> slots;
  };

  Entry* entry(STag stag) const {
    if (stag_index(stag) == 0) return nullptr;
    return slots_.load(std::memory_order_acquire)->locate(stag_index(stag)).entry;
  }
  /// The entry of the STag's index; a window whose parent has gone is made invalid first.
  Entry* live_entry(STag stag) const {
    Entry* found = entry(stag);
    if (found != nullptr && found->parent_serial != 0) [[unlikely]]
      end_orphan(*found);
    return found;
  }
  void end_orphan(Entry& window) const;
  RegionFault check_window(const Entry* window, uint32_t protection_domain,
                           uint32_t qp_number) const;
  void unbind(Entry& window);
  void release_parent(const Entry& window);
  STag draw_stag(Slots& slots) const;
  STag add(Region region, bool chosen);
  /// Publishes a roomier (or cleaner) array; the caller frees the returned one after quiescence.
  Slots* replace_slots();

  void count_change() { changes_.fetch_add(1, std::memory_order_release); }

  std::function<void(STag)> observer_;  // may be empty
  Quiesce quiesce_;
  RandomSource random_;
  const size_t max_entries_;
  mutable std::mutex mutex_;  // writers
  std::atomic<Slots*> slots_;
  std::atomic<uint64_t> changes_ = 1;
  size_t used_ = 0;           // entries; guarded by the mutex
  uint64_t next_serial_ = 1;  // guarded by the mutex
};

}  // namespace diwarp::ddp
