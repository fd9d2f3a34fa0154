// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/pool.h"
#include "diwarp/datagram_options.h"
#include "diwarp/types.h"
#include "rnic/datagram/ud/ud_read.h"

namespace diwarp::rnic {

/// The Reads under way of a UD queue pair, in the order of their beginning, and when each is
/// overdue. They are made when first needed, and then used again; at most max_outstanding are
/// under way. UdReader owns it. With the baton.
///
/// A target answers requests in their order, so it is at work for a Read while it answers an
/// earlier one: a sign of one Read counts for the later ones of the same target.
class UdReads {
 public:
  /// `options` live as long as this. `max_ranges`: of what came of a Read.
  UdReads(const ReadOptions& options, uint32_t max_ranges)
      : options_(options), max_ranges_(max_ranges) {}

  bool full() const { return under_way_ == options_.max_outstanding; }
  size_t under_way() const { return under_way_; }
  UdRead* front() { return active_.front(); }
  UdRead* next(UdRead& read) { return active_.next(read); }

  /// A Read that is the last one under way, and has no parts. Null where there is no memory. Not
  /// when full().
  UdRead* begin() noexcept;
  /// All parts of the Read are spare.
  void end(UdRead& read);

  /// When the target of a Read has been silent for its timeout.
  Time silent_at(UdRead& read);
  /// When something is to be done about a Read.
  Time due(UdRead& read);
  /// Before `read` ends: later ones may have waited for it.
  void hand_on_sign(UdRead& read);

  /// The part that was asked of `from` first among those for which `fits` is true; null: none is.
  template <class Fits>
  UdReadPart* find_asked(const Address& from, Fits&& fits);

 private:
  Time last_sign(UdRead& read);

  const ReadOptions& options_;
  const uint32_t max_ranges_;
  uint32_t under_way_ = 0;
  // Declared before the list that names them, so that they outlive it.
  Pool<UdRead> reads_;
  IntrusiveList<UdRead, UdReadTag> active_;  // in the order of their beginning
};

template <class Fits>
UdReadPart* UdReads::find_asked(const Address& from, Fits&& fits) {
  UdReadPart* first = nullptr;
  for (UdRead* read = active_.front(); read != nullptr; read = active_.next(*read)) {
    if (read->entry->destination != from) continue;  // guard(reads)
    for (UdReadPart* part = read->parts.front(); part != nullptr; part = read->parts.next(*part)) {
      // guard(read-progress): part->asked_as < first->asked_as => true
      const bool earlier = first == nullptr || part->asked_as < first->asked_as;
      if (part->asked && earlier && fits(*part)) first = part;
    }
  }
  return first;
}

}  // namespace diwarp::rnic
