// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include "diwarp/address.h"

namespace diwarp::rnic {

/// The connections of a listener whose MPA request has not come whole, oldest first. There is
/// always room for one more: the oldest gives way, of the same address if that has used up its
/// share. So peers that connect and stay silent keep nobody out.
template <class Startup>
class Startups {
 public:
  using Item = std::shared_ptr<Startup>;

  Startups(size_t most, size_t most_per_address)
      : most_(most), most_per_address_(most_per_address) {}

  /// Returns what gives way to it and is no longer in here, or null.
  Item add(const Address& peer, Item startup) {
    const Address address = peer.with_port(0);
    Item evicted = make_room(address);
    entries_.push_back({address, std::move(startup)});
    return evicted;
  }

  /// The oldest one, no longer in here; null where there is none.
  Item take_oldest() { return entries_.empty() ? nullptr : take(entries_.begin()); }

  void remove(const Item& startup) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.startup == startup; });
  }

  template <class Work>
  void for_each(Work&& work) {
    for (Entry& entry : entries_) work(*entry.startup);
  }
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Address address;
    Item startup;
  };

  Item make_room(const Address& address) {
    size_t of_address = 0;
    auto oldest = entries_.end();
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (entry->address != address) continue;
      if (of_address++ == 0) oldest = entry;
    }
    if (of_address >= most_per_address_) return take(oldest);  // guard(connect)
    // guard(connect): => return nullptr;
    return entries_.size() >= most_ ? take_oldest() : nullptr;
  }

  Item take(typename std::list<Entry>::iterator entry) {
    Item startup = std::move(entry->startup);
    entries_.erase(entry);
    return startup;
  }

  const size_t most_;
  const size_t most_per_address_;
  std::list<Entry> entries_;
};

}  // namespace diwarp::rnic
