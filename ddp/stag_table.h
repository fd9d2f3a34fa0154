// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "base/bytes.h"
#include "diwarp/types.h"

namespace diwarp::ddp {

/// An STag is an index (24 bits), which tells the entry of the table, and a key (the low 8 bits),
/// which its owner changes whenever it is made valid again, so that old STags name nothing.
inline constexpr int kStagKeyBits = 8;
constexpr uint32_t stag_index(STag stag) { return stag >> kStagKeyBits; }

enum class EntryKind : uint8_t {
  region,
  window,             ///< a memory window (type 2: for one queue pair)
  fast_registration,  ///< memory is named by a work request
};

/// The memory that an STag names. Owned by the table; it changes only with the engine's baton.
struct Region {
  STag stag = 0;
  uint32_t protection_domain = 0;
  Access access = Access::none;
  std::byte* memory = nullptr;
  uint64_t base = 0;    ///< tagged offset of the first byte
  uint64_t length = 0;  ///< bytes
  EntryKind kind = EntryKind::region;
  bool valid = true;        ///< windows and fast registrations: false until bound or registered
  uint32_t qp_number = 0;   ///< window: the only queue pair that may use it; 0: any
  STag parent = 0;          ///< window: the region that it is bound to
  uint64_t max_length = 0;  ///< fast registration: bytes at most

  /// The memory at a tagged offset within it.
  std::byte* at(uint64_t tagged_offset) const { return memory + (tagged_offset - base); }
};

/// Why a placement, a local access or a change of an entry is not allowed, in the order of the
/// checks (RFC 5041 section 7.2.3 and RFC 5042 section 8.1.1).
enum class RegionFault : uint8_t {
  none,
  unknown_stag,
  invalid,  ///< the entry is there, but names no memory now
  wrong_domain,
  wrong_queue_pair,  ///< a window of another queue pair
  access,
  wrap,    ///< the bytes would go on beyond the last 64-bit offset
  bounds,  ///< they lie elsewhere outside of the entry
  in_use,  ///< changes only: it is valid already, or windows are bound to it
};

/// Checks `length` bytes at tagged offset `offset` of `region` (null: unknown). Safe against 64-bit
/// wrap; a length of zero is checked like any other and may stand at the region's very end.
RegionFault check_tagged(const Region* region, uint32_t protection_domain, uint32_t qp_number,
                         Access want, uint64_t offset, uint64_t length);

/// Checks that an SGE lies inside `region`, which must not be a window. An SGE of length zero needs
/// no region.
RegionFault check_local(const Region* region, uint32_t protection_domain, Access want,
                        const Sge& sge);

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
  /// the pointer lives until the baton is given back.
  const Region* find(STag stag) const;
  /// The same for an STag's owner: whatever the key is now.
  const Region* find_any_key(STag stag) const;

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
  struct Entry;
  struct Slots;
  Entry* entry(STag stag) const;
  Entry* live_entry(STag stag) const;
  RegionFault check_window(const Entry* window, uint32_t protection_domain,
                           uint32_t qp_number) const;
  void unbind(Entry& window);
  void release_parent(const Entry& window);
  STag draw_stag(Slots& slots) const;
  STag add(Region region, bool chosen);
  /// Publishes a roomier (or cleaner) array; the caller frees the returned one after quiescence.
  Slots* replace_slots();

  std::function<void(STag)> observer_;  // may be empty
  Quiesce quiesce_;
  RandomSource random_;
  const size_t max_entries_;
  mutable std::mutex mutex_;  // writers
  std::atomic<Slots*> slots_;
  size_t used_ = 0;           // entries; guarded by the mutex
  uint64_t next_serial_ = 1;  // guarded by the mutex
};

}  // namespace diwarp::ddp
