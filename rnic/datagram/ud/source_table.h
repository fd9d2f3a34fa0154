// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "base/keyed_hash.h"
#include "base/memory_budget.h"
#include "ddp/reassembly.h"
#include "diwarp/address.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/record_source.h"
#include "rnic/datagram/stag_miss_limit.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

struct SourceAgeTag;
struct SourceOfAddressTag;
struct UnprovenTag;
struct OpenOfSourceTag;
struct OpenAgeTag;

struct ResponseLane;
struct Source;

/// A message of several segments that is not whole yet.
struct OpenMessage : ListNode<OpenOfSourceTag>, ListNode<OpenAgeTag> {
  Source* source = nullptr;
  uint32_t msn = 0;
  rdmap::MessageInfo info;
  ReceiveEntry* receive = nullptr;
  ddp::Reassembly reassembly;
  Time last_progress{};
};

/// The memory for sources, and how long they are remembered (see DatagramOptions).
struct SourceLimits {
  size_t sources = 16384;
  size_t per_address = 1024;
  size_t unproven = 1024;
  size_t memory = size_t{32} << 20;  ///< bytes
  Duration timeout = std::chrono::seconds(60);
  uint32_t closed = 1024;  ///< per source
  uint32_t refused = 256;  ///< runs per source

  static SourceLimits of(const DatagramOptions& options);
};

struct AddressShare;

/// One peer queue pair that has sent something.
struct Source : RecordSource,
                ListNode<SourceAgeTag>,
                ListNode<SourceOfAddressTag>,
                ListNode<UnprovenTag> {
  Source(const SourceKey& its_key, const SourceLimits& limits, MemoryBudget& budget)
      : RecordSource(its_key, ddp::ClosedMessages(limits.closed, limits.refused, &budget)),
        closed(limits.closed, limits.refused, &budget) {}

  ddp::ClosedMessages closed;  // Sends
  Time last_heard{};
  uint32_t open_count = 0;
  uint32_t responses = 0;  // Read Requests that wait to be answered
  uint32_t local = 0;      // where it reaches this queue pair, as an IncomingDatagram has it
  StagMissCount stag_misses;
  ResponseLane* lane = nullptr;   // the responder's, while there are some
  AddressShare* share = nullptr;  // the table's
  IntrusiveList<OpenMessage, OpenOfSourceTag> open;

  /// A Send is over that was refused or given up.
  void refuse_send(uint32_t msn) { closed.refuse(msn, !is_proven()); }
  /// Something refers to it: it must not be forgotten.
  bool in_use() const { return open_count != 0 || open_records != 0 || responses != 0; }
};

/// The sources at one address, with any port.
struct AddressShare {
  size_t count = 0;
  uint32_t open_messages = 0;
  uint32_t open_records = 0;
  // Longest silent first. Some of the unproven ones were proven since they were last touched.
  IntrusiveList<Source, SourceOfAddressTag> unproven;
  IntrusiveList<Source, SourceOfAddressTag> proven;
};

/// The sources a UD queue pair remembers, so that nothing is delivered twice. Bounded in number, of
/// one address as well, and in memory: a new source takes the place of another one that nothing
/// refers to. Unproven ones go first, then the one that was silent longest. The hash is keyed:
/// nobody can choose addresses or incarnations that fall together.
class SourceTable {
 public:
  /// The least bytes that a source takes, besides its memory of messages that are over: two nodes
  /// and buckets of hash tables, with the allocator's overhead.
  static constexpr size_t kSourceBytes = sizeof(Source) + sizeof(AddressShare) + 160;

  SourceTable(const SourceLimits& limits, const SipKey& key);

  /// The source, made if it is new; null if there is no place for it, or no memory (`reason`).
  Source* find_or_add(const SourceKey& key, Time now, Counter& reason) {
    if (latest_ == nullptr || !(latest_->key == key)) return find_another(key, now, reason);
    latest_->last_heard = now;
    return latest_;
  }

  /// Forgets the sources that were silent for the time-out.
  void expire(Time now);
  /// When expire() has something to do next; Time::max(): there are no sources.
  Time next_expiry() {
    const Source* const oldest = by_age_.front();
    return oldest == nullptr ? Time::max() : saturating_add(oldest->last_heard, limits_.timeout);
  }

  void clear();
  size_t size() const { return sources_.size(); }
  /// Bytes that are counted against the bound.
  size_t memory() const { return budget_.used(); }

 private:
  Source* find_another(const SourceKey& key, Time now, Counter& reason);
  Source* add(const SourceKey& key, Counter& reason);
  Source* make(const SourceKey& key) noexcept;
  bool make_room(const Address& address);
  bool forget_oldest_of(AddressShare& share);
  bool forget_oldest_unproven();
  bool forget_oldest();
  void touch(Source& source, Time now);
  void leave_unproven(Source& source);
  void forget(Source& source);

  const SourceLimits limits_;
  MemoryBudget budget_;
  std::unordered_map<Address, AddressShare, KeyedHash<Address>> shares_;
  std::unordered_map<SourceKey, std::unique_ptr<Source>, KeyedHash<SourceKey>> sources_;
  IntrusiveList<Source, SourceAgeTag> by_age_;   // longest silent first
  IntrusiveList<Source, UnprovenTag> unproven_;  // the same; and some that were proven since
  size_t unproven_count_ = 0;
  Source* latest_ = nullptr;  // of the last datagram: most come in trains
};

}  // namespace diwarp::rnic
