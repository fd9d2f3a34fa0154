// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "ddp/closed_messages.h"
#include "diwarp/address.h"

namespace diwarp::rnic {

struct Record;
struct RecordOfSourceTag;

struct SourceKey {
  Address address;
  uint32_t incarnation = 0;
  /// 0: it sends to the queue pair's own address; else the number of the group that it sends to.
  /// All members of a group know the incarnation that it is shown, which says nothing of other
  /// datagrams.
  uint32_t group = 0;
  friend bool operator==(const SourceKey&, const SourceKey&) = default;
};

/// A peer queue pair as the source of Write-Records: address, port and incarnation.
struct RecordSource {
  RecordSource() = default;
  RecordSource(const SourceKey& its_key, ddp::ClosedMessages closed)
      : key(its_key), closed_records(std::move(closed)) {}

  SourceKey key;
  ddp::ClosedMessages closed_records;  // their MSNs are a space of their own
  IntrusiveList<Record, RecordOfSourceTag> records;
  uint32_t open_records = 0;
  bool finished = false;                   // a message of it was accepted
  uint32_t* records_of_address = nullptr;  // open ones, of all sources there; null over RD
  Time validated_until{};                  // it has shown that it is where it says

  // guard(reads): now < validated_until => validated_until != Time{}
  bool is_validated(Time now) const { return now < validated_until; }
  /// An attacker that forges sources has to spend more on a proven one: it has finished a message,
  /// or hears what is sent to its address. The others give way to these, and get little memory.
  bool is_proven() const { return finished || validated_until != Time{}; }

  /// A message of the kind that `over` has is over, and was accepted.
  void accept(ddp::ClosedMessages& over, uint32_t msn) {
    over.close(msn);
    finished = true;
  }
};

}  // namespace diwarp::rnic
