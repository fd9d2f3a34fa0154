// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "base/pool.h"
#include "base/validity_pool.h"
#include "ddp/protection_context.h"
#include "ddp/record.h"
#include "diwarp/attributes.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/record_source.h"
#include "rnic/datagram/verdict.h"

namespace diwarp::rnic {

class CompletionQueue;
class ReceiveBuffers;

struct RecordAgeTag;

/// A Write-Record that is open, or over and waiting to be reported.
struct Record : ListNode<RecordOfSourceTag>, ListNode<RecordAgeTag> {
  RecordSource* source = nullptr;  // while it is open
  Address from;
  uint32_t msn = 0;
  uint64_t tagged_offset = 0;   // as it is reported
  uint32_t byte_count = 0;      // the same
  uint64_t receives_first = 0;  // as many of the queue pair's are to be reported before it
  Time last_progress{};
  bool restarts = false;  // its source will send it once more, from the start
  ddp::Record bytes;
};
using RecordsByAge = IntrusiveList<Record, RecordAgeTag>;

/// The target's half of Write-Record: places segments directly into the memory they name, and tells
/// the application which bytes of each message are valid there. A reported message is closed: late
/// segments touch nothing. All with the baton.
///
/// Bounded: in open records, in all and from one source (one more ends the one that was longest
/// without progress, of that source, or of unproven ones, or of the address that has most, which is
/// reported as it is), in records that wait for room in the completion queue (while as many wait as
/// may be open, none opens), and in maps of several ranges.
class RecordTable {
 public:
  struct Parts {
    const ddp::ProtectionContext& protection;
    ReceiveBuffers& receives;  ///< with whose completions those of records are in order
    CompletionQueue& cq;
    Counters& counters;
  };

  /// `timed`: UD. Otherwise RD: a peer's messages come complete and in order, so that no record
  /// times out, a peer has one at a time, and all peers may have one.
  RecordTable(const Parts& parts, const DatagramOptions& options, bool timed);

  /// Checks a segment of a Write-Record, and places it. Nothing is written before all is checked.
  Verdict handle(const rdmap::DatagramSegment& segment, RecordSource& source, Time now);

  /// Whether a segment that opens a record would find room for it. (RD asks first, and waits.)
  bool has_room();

  /// Ends the records of which nothing new came for the record timeout.
  void expire(Time now);
  /// When expire() has something to do next; Time::max(): no record is open that can time out.
  Time next_expiry() {
    const Record* const oldest = by_age_.front();
    const bool waits = timed_ && oldest != nullptr;
    return waits ? saturating_add(oldest->last_progress, timeout_) : Time::max();
  }

  /// Ends a source's records: it is about to be forgotten.
  void close_of(RecordSource& source);
  /// The same of this record of the source, if it is open.
  void close(RecordSource& source, uint32_t msn);
  /// A source's open records begin anew with their first segment, if it sends that once more. (RD.)
  void restart_of(RecordSource& source);
  /// Ends the records on an STag that is not valid any more.
  void close_on(STag stag);
  /// Forgets all, and reports nothing. Sources may have gone before.
  void reset();

  /// Moves completions of records that are over to `cq`, up to one for which it is not yet time.
  /// False if it is full and some have to wait.
  bool report(CompletionQueue& cq);
  /// Whether a record is over that report() has not moved yet.
  bool any_done() const { return !done_.empty(); }
  /// How many of the queue pair's receives, counted from the first ever, are to be reported before
  /// the next record; nothing where none waits.
  std::optional<uint64_t> receives_first() {
    const Record* record = done_.front();
    if (record == nullptr) return std::nullopt;
    return record->receives_first;
  }

  std::vector<OpenRecord> open();
  size_t open_count() const { return open_count_; }
  /// Where its maps of several ranges come from.
  const std::shared_ptr<ValidityPool>& maps() const { return maps_; }

 private:
  using Segment = rdmap::DatagramSegment;

  bool make_room(RecordSource& source);
  Record* take_idle(const Segment& segment, const ddp::RecordInfo& info,
                    const RecordSource& source);
  Record* open_record(const Segment& segment, const ddp::RecordInfo& info, RecordSource& source,
                      Time now);
  Verdict place(const Segment& segment, const ddp::PlacementTarget& target, Record& record,
                Time now);
  Verdict report_segment(const Segment& segment, const ddp::RecordInfo& info,
                         const ddp::PlacementTarget& target, RecordSource& source);
  void progressed(Record& record, Time now);
  void finish(Record& record);
  void wait(Record& record);
  void evict(Record& record);
  void release_all(RecordsByAge& records);

  const Parts parts_;
  const RecordCompletion policy_;
  const bool timed_;
  const Duration timeout_;
  const uint32_t max_open_;
  const uint32_t max_open_per_source_;
  const uint32_t max_done_;
  const std::shared_ptr<ValidityPool> maps_;

  Pool<Record> records_;  // declared before the lists that name them
  RecordsByAge by_age_;   // open; longest without progress first
  RecordsByAge done_;     // to be reported, in order
  uint32_t open_count_ = 0;
  uint32_t done_count_ = 0;
};

}  // namespace diwarp::rnic
