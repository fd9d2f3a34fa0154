// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/bytes.h"
#include "diwarp/types.h"

namespace diwarp::ddp {

/// What an STag names. Immutable while it is in the table.
struct Region {
  STag stag = 0;
  uint32_t protection_domain = 0;
  Access access = Access::none;
  std::byte* memory = nullptr;
  uint64_t base = 0;    ///< tagged offset of the first byte
  uint64_t length = 0;  ///< bytes
};

/// Why a placement or a local access is not allowed, in the order of the checks (RFC 5041 section
/// 7.2.3 and RFC 5042 section 8.1.1).
enum class RegionFault : uint8_t { none, unknown_stag, wrong_domain, access, bounds, wrap };

/// Checks `length` bytes at tagged offset `offset` of `region` (null: unknown). Safe against 64-bit
/// wrap; a length of zero is checked like any other and may stand at the region's very end. What
/// wraps lies outside any region whose own offsets do not, so that `wrap` is told only of others.
RegionFault check_tagged(const Region* region, uint32_t protection_domain, Access want,
                         uint64_t offset, uint64_t length);

/// Checks that an SGE lies inside `region`. An SGE of length zero needs no region.
RegionFault check_local(const Region* region, uint32_t protection_domain, Access want,
                        const Sge& sge);

/// The map from STags to regions, shared by all engines of a device.
///
/// Readers (find) hold no lock; they must be inside a quiescence section of the owner (the engine's
/// baton). Writers take a mutex, unpublish, and call `quiesce`, which returns only when every
/// reader that may have seen the old state is done; only then is memory reused. `quiesce` is called
/// without the mutex, from insert() (when the table grows) and erase(); never call these as a
/// reader.
class STagTable {
 public:
  using Quiesce = std::function<void()>;
  using RandomSource = std::function<uint32_t()>;

  STagTable(Quiesce quiesce, RandomSource random);
  ~STagTable();
  STagTable(const STagTable&) = delete;
  STagTable& operator=(const STagTable&) = delete;

  /// Adds a region under a fresh random STag (never 0), which is returned. `region.stag` is
  /// ignored.
  STag insert(Region region);

  /// Removes a region; false if it is not there. When it returns no reader uses the region.
  bool erase(STag stag);

  /// The region, or null. It stays valid until the reader leaves its quiescence section.
  const Region* find(STag stag) const;

  size_t size() const;

 private:
  struct Slots;
  STag draw_stag(Slots& slots) const;
  /// Publishes a roomier (or cleaner) array; the caller frees the returned one after quiescence.
  Slots* replace_slots();

  Quiesce quiesce_;
  RandomSource random_;
  mutable std::mutex mutex_;  // writers
  std::atomic<Slots*> slots_;
  size_t used_ = 0;  // regions; guarded by the mutex
};

}  // namespace diwarp::ddp
