// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/source_table.h"

#include <new>
#include <utility>

namespace diwarp::rnic {

SourceLimits SourceLimits::of(const DatagramOptions& options) {
  return {.sources = options.max_sources,
          .per_address = options.max_sources_per_address,
          .unproven = options.max_unproven_sources,
          .memory = options.max_source_memory,
          .timeout = options.source_timeout,
          .closed = options.closed_per_source,
          .refused = options.refused_per_source};
}

SourceTable::SourceTable(const SourceLimits& limits, const SipKey& key)
    : limits_(limits),
      budget_(limits.memory),
      shares_(0, KeyedHash<Address>(key)),
      sources_(0, KeyedHash<SourceKey>(key)) {}

Source* SourceTable::find_another(const SourceKey& key, Time now, Counter& reason) {
  const auto found = sources_.find(key);
  latest_ = found != sources_.end() ? found->second.get() : add(key, reason);
  // guard(sources): touch => if (!static_cast<ListNode<SourceAgeTag>&>(*latest_).linked()) touch
  if (latest_ != nullptr) touch(*latest_, now);
  return latest_;
}

/// It is the last one to go from now on.
void SourceTable::touch(Source& source, Time now) {
  source.last_heard = now;
  by_age_.remove(source);
  by_age_.push_back(source);
  static_cast<ListNode<SourceOfAddressTag>&>(source).unlink();
  (source.is_proven() ? source.share->proven : source.share->unproven).push_back(source);
  leave_unproven(source);
  if (source.is_proven()) return;
  unproven_.push_back(source);
  ++unproven_count_;
}

void SourceTable::leave_unproven(Source& source) {
  if (static_cast<ListNode<UnprovenTag>&>(source).linked()) --unproven_count_;
  unproven_.remove(source);
}

// --- New ones.

Source* SourceTable::add(const SourceKey& key, Counter& reason) {
  reason = Counter::drop_sources_full;
  if (!make_room(key.address)) return nullptr;
  while (!budget_.take(kSourceBytes))
    if (!forget_oldest_unproven() && !forget_oldest()) return nullptr;  // guard(sources)
  reason = Counter::drop_no_memory;
  Source* const source = make(key);
  if (source == nullptr) budget_.give_back(kSourceBytes);
  return source;
}

/// Null, and nothing has changed, where there is no memory.
Source* SourceTable::make(const SourceKey& key) noexcept {
  const Address host = key.address.with_port(0);
  AddressShare* share = nullptr;
  try {
    share = &shares_.try_emplace(host).first->second;
    auto made = std::make_unique<Source>(key, limits_, budget_);
    Source* const source = made.get();
    sources_.emplace(key, std::move(made));
    ++share->count;
    source->share = share;
    source->records_of_address = &share->open_records;
    return source;
  } catch (const std::bad_alloc&) {
    if (share != nullptr && share->count == 0) shares_.erase(host);
    return nullptr;
  }
}

bool SourceTable::make_room(const Address& address) {
  const auto share = shares_.find(address.with_port(0));
  const size_t of_address = share == shares_.end() ? 0 : share->second.count;
  if (of_address >= limits_.per_address) return forget_oldest_of(share->second);  // guard(sources)
  if (unproven_count_ >= limits_.unproven) forget_oldest_unproven();              // guard(sources)
  if (unproven_count_ >= limits_.unproven) return false;                          // guard(sources)
  if (sources_.size() < limits_.sources) return true;  // guard(sources): => return true;
  // guard(sources): => return forget_oldest() || forget_oldest_unproven();
  return forget_oldest_unproven() || forget_oldest();
}

/// Unproven ones first here as well: else an attacker that forges the address could have those of
/// its owner forgotten.
bool SourceTable::forget_oldest_of(AddressShare& share) {
  Source* source = share.unproven.front();
  while (source != nullptr) {
    Source* const next = share.unproven.next(*source);
    if (source->is_proven()) {
      share.unproven.remove(*source);
      share.proven.push_back(*source);
    } else if (!source->in_use()) {  // guard(sources): without if (!source->in_use())
      forget(*source);
      return true;
    }
    source = next;
  }
  for (source = share.proven.front(); source != nullptr; source = share.proven.next(*source)) {
    if (source->in_use()) continue;
    forget(*source);
    return true;
  }
  return false;
}

bool SourceTable::forget_oldest_unproven() {
  Source* source = unproven_.front();
  while (source != nullptr) {
    Source* const next = unproven_.next(*source);
    if (source->is_proven()) {
      leave_unproven(*source);
    } else if (!source->in_use()) {  // guard(sources): without if (!source->in_use())
      forget(*source);
      return true;
    }
    source = next;
  }
  return false;
}

bool SourceTable::forget_oldest() {
  for (Source* source = by_age_.front(); source != nullptr; source = by_age_.next(*source)) {
    if (source->in_use()) continue;
    forget(*source);
    return true;
  }
  return false;
}

// --- They go.

/// One that something refers to is looked at again after the time-out.
void SourceTable::expire(Time now) {
  while (Source* oldest = by_age_.front()) {
    if (now - oldest->last_heard < limits_.timeout) return;  // guard(sources): => return;
    // guard(sources): => forget(*oldest);
    if (oldest->in_use())
      touch(*oldest, now);
    else
      forget(*oldest);
  }
}

void SourceTable::forget(Source& source) {
  if (latest_ == &source) latest_ = nullptr;
  leave_unproven(source);
  AddressShare& share = *source.share;
  const SourceKey key = source.key;
  sources_.erase(key);
  if (--share.count == 0) shares_.erase(key.address.with_port(0));
  budget_.give_back(kSourceBytes);
}

void SourceTable::clear() {
  latest_ = nullptr;
  budget_.give_back(sources_.size() * kSourceBytes);
  sources_.clear();
  shares_.clear();
  unproven_count_ = 0;
}

}  // namespace diwarp::rnic
