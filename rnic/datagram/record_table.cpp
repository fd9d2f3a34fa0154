// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/record_table.h"

#include <algorithm>
#include <limits>
#include <new>

#include "rdmap/terminate.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();

Counter counter_of(ddp::SegmentFault fault) {
  switch (fault) {
    case ddp::SegmentFault::contradiction:
      return Counter::drop_contradiction;
    case ddp::SegmentFault::range_limit:
      return Counter::drop_range_limit;
    default:
      return Counter::drop_duplicate;
  }
}

/// Parsing has seen to it that no difference and no sum of these wraps.
ddp::RecordInfo info_of(const rdmap::DatagramSegment& segment) {
  return {.stag = segment.stag,
          .base = segment.tagged_offset - segment.message_offset,
          .length = segment.message_length,
          .solicited = segment.solicited(),
          .has_immediate = segment.has_immediate,
          .immediate = segment.has_immediate ? segment.immediate : 0};
}

uint32_t payload_bytes(const rdmap::DatagramSegment& segment) {
  return static_cast<uint32_t>(segment.payload.size());
}

Record* find(RecordSource& source, uint32_t msn) {
  for (Record* record = source.records.front(); record != nullptr;
       record = source.records.next(*record))
    if (record->msn == msn) return record;  // guard(records): without if (record->msn == msn)
  return nullptr;
}

Record* oldest_unproven(RecordsByAge& open) {
  Record* record = open.front();
  // guard(floods)
  while (record != nullptr && record->source->is_proven()) record = open.next(*record);
  return record;
}

/// Some record is open.
Record& oldest_of_fullest_address(RecordsByAge& open) {
  Record* oldest = open.front();
  for (Record* record = oldest; record != nullptr; record = open.next(*record))
    if (*record->source->records_of_address > *oldest->source->records_of_address) oldest = record;
  return *oldest;
}

Record* oldest_of_address(RecordsByAge& open, const uint32_t* open_there) {
  Record* record = open.front();
  while (record->source->records_of_address != open_there) record = open.next(*record);
  return record;
}

/// For a record of `source`, in a full table: one of sources that have finished none, or of the
/// address that has most. Where that has no more than a place above the part of the source's own
/// address, one of that: a place of another would only change hands.
Record& to_give_way(RecordsByAge& open, const RecordSource& source) {
  if (Record* const unproven = oldest_unproven(open)) return *unproven;
  Record& of_fullest = oldest_of_fullest_address(open);
  const uint32_t own = *source.records_of_address;
  // guard(many-proven-sources): condition => false
  if (*of_fullest.source->records_of_address > own + 1) return of_fullest;
  return own != 0 ? *oldest_of_address(open, source.records_of_address) : of_fullest;
}

void forget_open_of(RecordSource& source) {
  source.open_records = 0;
  if (source.records_of_address != nullptr) *source.records_of_address = 0;
}

/// Takes the validity map out of the record. The place, which holds none, is made anew.
void write_completion(Record& record, uint32_t queue_pair, WorkCompletion& completion) {
  const ddp::RecordInfo& info = record.bytes.info();
  new (&completion) WorkCompletion{.opcode = WcOpcode::recv_write_record,
                                   .solicited = info.solicited,
                                   .byte_count = record.byte_count,
                                   .qp_number = queue_pair,
                                   .has_immediate = info.has_immediate,
                                   .immediate = info.immediate,
                                   .source = record.from,
                                   .stag = info.stag,
                                   .tagged_offset = record.tagged_offset,
                                   .valid_bytes = record.bytes.valid_bytes(),
                                   .validity = record.bytes.take_map()};
}

}  // namespace

RecordTable::RecordTable(const Parts& parts, const DatagramOptions& options, bool timed)
    : parts_(parts),
      policy_(options.record_completion),
      timed_(timed),
      timeout_(options.record_timeout),
      max_open_(timed ? options.max_open_records : kNoLimit),
      max_open_per_source_(timed ? options.max_open_records_per_source : 1),
      max_done_(options.max_open_records),
      maps_(ValidityPool::create(options.max_validity_maps, options.max_record_ranges)) {}

Verdict RecordTable::handle(const Segment& segment, RecordSource& source, Time now) {
  const ddp::RecordInfo info = info_of(segment);
  Record* record = find(source, segment.msn);
  // Open ones first: an open record may lie at or below the floor of what is remembered.
  // guard(records): condition => false
  // guard(records): without record == nullptr &&
  if (record == nullptr && source.closed_records.contains(segment.msn))
    return Verdict::dropped(Counter::drop_late);
  if (record != nullptr && record->bytes.contradicts(info))  // guard(records): condition => false
    return Verdict::dropped(Counter::drop_contradiction);

  // guard(records): Access::remote_write => Access::none
  // guard(records): Access::remote_write => Access::local_write
  // guard(records): info.base, info.length => segment.tagged_offset, segment.payload.size()
  const auto [fault, region, target] =
      parts_.protection.check_placement(info.stag, Access::remote_write, info.base, info.length);
  // guard(records): condition => region == nullptr
  if (fault != ddp::RegionFault::none) return tagged_verdict(fault);
  // guard(guesses): condition => false
  if (timed_ && has(region->access, Access::validated_source) && !source.is_validated(now))
    return {.drop = Counter::drop_unvalidated, .fault = rdmap::fault::kAccessRights};

  if (policy_ == RecordCompletion::per_segment)
    return report_segment(segment, info, target, source);
  if (record == nullptr) record = open_record(segment, info, source, now);
  // guard(records): => if (record == nullptr) return Verdict::accepted();
  if (record == nullptr) return Verdict::dropped(Counter::drop_no_context);
  return place(segment, target, *record, now);
}

bool RecordTable::has_room() {
  if (done_count_ < max_done_) return true;
  report(parts_.cq);               // guard(records)
  return done_count_ < max_done_;  // guard(records): => return true;
}

/// Room for one more open record of `source`, if need be in the place of another.
bool RecordTable::make_room(RecordSource& source) {
  if (!has_room()) return false;                    // guard(records)
  if (source.open_records >= max_open_per_source_)  // guard(records): condition => false
    evict(*source.records.back());                  // guard(records): back() => front()
  else if (open_count_ >= max_open_)  // guard(records): open_count_ >= max_open_ => false
    evict(to_give_way(by_age_, source));
  return true;
}

Record* RecordTable::take_idle(const Segment& segment, const ddp::RecordInfo& info,
                               const RecordSource& source) {
  Record* const record = &records_.acquire_or_make();
  record->from = source.key.address;
  record->msn = segment.msn;
  record->tagged_offset = info.base;
  record->byte_count = info.length;
  record->bytes.open(info);
  return record;
}

Record* RecordTable::open_record(const Segment& segment, const ddp::RecordInfo& info,
                                 RecordSource& source, Time now) {
  if (!make_room(source)) return nullptr;
  Record* record = take_idle(segment, info, source);
  record->source = &source;
  record->restarts = false;
  record->last_progress = now;
  source.records.push_front(*record);
  ++source.open_records;
  if (source.records_of_address != nullptr) ++*source.records_of_address;
  by_age_.push_back(*record);
  ++open_count_;
  parts_.counters.add(Meter::open_records);
  return record;
}

/// The target is the whole message's.
Verdict RecordTable::place(const Segment& segment, const ddp::PlacementTarget& target,
                           Record& record, Time now) {
  // guard(rd-record-cut-anew): condition => false
  if (record.restarts && segment.message_offset == 0) {
    record.restarts = false;
    record.bytes.open(record.bytes.info());
  }
  const ddp::SegmentFault fault =
      record.bytes.add(segment.message_offset, payload_bytes(segment), segment.last, *maps_);
  // guard(records)
  if (fault != ddp::SegmentFault::none) return Verdict::dropped(counter_of(fault));
  target.place(segment.message_offset, segment.payload);
  // guard(records): without if (!segment.payload.empty())
  if (!segment.payload.empty()) progressed(record, now);  // guard(records)
  // guard(records): without policy_ == RecordCompletion::last_segment &&
  // guard(records): => const bool ended = false;
  const bool ended = policy_ == RecordCompletion::last_segment && record.bytes.ended();
  if (ended || record.bytes.complete()) finish(record);
  return Verdict::accepted();
}

void RecordTable::progressed(Record& record, Time now) {
  record.last_progress = now;
  if (by_age_.back() != &record) {  // guard(records): condition => false
    by_age_.remove(record);
    by_age_.push_back(record);
  }
  IntrusiveList<Record, RecordOfSourceTag>& of_source = record.source->records;
  if (of_source.front() != &record) {  // guard(records): condition => false
    of_source.remove(record);
    of_source.push_front(record);
  }
}

/// Nothing is remembered of the message: each segment is told of by itself.
Verdict RecordTable::report_segment(const Segment& segment, const ddp::RecordInfo& info,
                                    const ddp::PlacementTarget& target, RecordSource& source) {
  if (!has_room()) return Verdict::dropped(Counter::drop_no_context);  // guard(records)
  source.finished = true;
  Record* record = take_idle(segment, info, source);
  record->tagged_offset = segment.tagged_offset;
  record->byte_count = payload_bytes(segment);
  record->bytes.add(segment.message_offset, record->byte_count, segment.last, *maps_);
  target.place(segment.message_offset, segment.payload);
  wait(*record);
  return Verdict::accepted();
}

/// Nothing of the message is taken any more; its valid bytes will be reported. Only a complete
/// one was accepted, and makes those that came long before it count as over. Of the others as many
/// are remembered of any source: reported bytes must not be written again, and a source that
/// gets so far has named memory rightly.
void RecordTable::finish(Record& record) {
  RecordSource& source = *record.source;
  const bool complete = record.bytes.complete();
  parts_.counters.add(complete ? Counter::records_completed : Counter::records_partial);
  // guard(records): source.accept(source.closed_records, record.msn) => void()
  if (complete)
    source.accept(source.closed_records, record.msn);
  else
    // guard(records): source.closed_records.refuse(record.msn, false) => void()
    // guard(floods): source.closed_records.refuse(record.msn, false) =>
    //     source.accept(source.closed_records, record.msn)
    source.closed_records.refuse(record.msn, false);
  source.records.remove(record);
  --source.open_records;
  if (source.records_of_address != nullptr) --*source.records_of_address;
  by_age_.remove(record);
  --open_count_;
  parts_.counters.subtract(Meter::open_records);
  record.source = nullptr;
  wait(record);
}

void RecordTable::wait(Record& record) {
  record.receives_first = parts_.receives.completed();
  done_.push_back(record);
  ++done_count_;
}

void RecordTable::evict(Record& record) {
  parts_.counters.add(Counter::records_evicted);
  finish(record);
}

void RecordTable::expire(Time now) {
  if (!timed_) return;
  while (Record* record = by_age_.front()) {
    // guard(records): => return;
    // guard(records)
    if (now - record->last_progress < timeout_) return;
    parts_.counters.add(Counter::message_timeouts);
    finish(*record);
  }
}

void RecordTable::close(RecordSource& source, uint32_t msn) {
  if (Record* record = find(source, msn)) finish(*record);
}

void RecordTable::close_of(RecordSource& source) {
  while (Record* record = source.records.front()) finish(*record);
}

void RecordTable::restart_of(RecordSource& source) {
  for (Record* record = source.records.front(); record != nullptr;
       record = source.records.next(*record))
    record->restarts = true;
}

void RecordTable::close_on(STag stag) {
  for (Record* record = by_age_.front(); record != nullptr;) {
    Record* next = by_age_.next(*record);
    // guard(records): => finish(*record);
    // guard(records)
    if (record->bytes.info().stag == stag) finish(*record);
    record = next;
  }
}

void RecordTable::reset() {
  release_all(by_age_);
  release_all(done_);
  parts_.counters.subtract(Meter::open_records, open_count_);
  open_count_ = done_count_ = 0;
}

void RecordTable::release_all(RecordsByAge& records) {
  while (Record* const record = records.pop_front()) {
    auto& of_source = static_cast<ListNode<RecordOfSourceTag>&>(*record);
    if (of_source.linked()) forget_open_of(*record->source);  // else the source has gone
    of_source.unlink();
    record->source = nullptr;
    record->bytes.clear();
    records_.release(record);
  }
}

bool RecordTable::report(CompletionQueue& cq) {
  while (Record* record = done_.front()) {
    // guard(completion-order-ud)
    if (record->receives_first > parts_.receives.reported()) return true;
    WorkCompletion* const completion = cq.next_place();
    if (completion == nullptr) return false;
    write_completion(*record, parts_.protection.queue_pair(), *completion);
    cq.publish(*completion);
    done_.remove(*record);
    --done_count_;
    records_.release(record);
  }
  return true;
}

std::vector<OpenRecord> RecordTable::open() {
  std::vector<OpenRecord> all;
  all.reserve(open_count_);
  for (Record* record = by_age_.front(); record != nullptr; record = by_age_.next(*record))
    all.push_back({.source = record->from,
                   .msn = record->msn,
                   .stag = record->bytes.info().stag,
                   .tagged_offset = record->tagged_offset,
                   .validity = record->bytes.copy_map()});
  return all;
}

}  // namespace diwarp::rnic
