// SPDX-License-Identifier: Apache-2.0
#include "rnic/rd_work.h"

#include <algorithm>

#include "ddp/scatter.h"
#include "rdmap/terminate.h"
#include "rnic/queue_pair.h"

namespace diwarp::rnic {

namespace {

using dgram::RdMark;

/// How long after it was first sent a message cannot have been delivered by a peer that says it
/// does not know the association (it forgets after a second of silence, at the earliest).
constexpr Duration kSurelyUndelivered = std::chrono::milliseconds(500);

RdMark mark_of(RdWhat what, void* object, uint64_t offset, uint64_t length) {
  return {.object = object,
          .offset = static_cast<uint32_t>(offset),
          .length = static_cast<uint32_t>(length),
          .what = static_cast<uint8_t>(what)};
}
const RdMark kNothing = mark_of(RdWhat::skip, nullptr, 0, 0);

bool is_read(const SendEntry& entry) { return entry.opcode == WrOpcode::rdma_read; }

template <class T>
void append(T*& list, T& item) {
  T** place = &list;
  while (*place != nullptr) place = &(*place)->next;
  *place = &item;
}

template <class T>
void take_out(T*& list, T& item) {
  T** place = &list;
  while (*place != nullptr && *place != &item) place = &(*place)->next;
  if (*place != nullptr) *place = item.next;
}

WcStatus status_of(const dgram::RdCode& code) {
  constexpr uint8_t kRdmap = 0;
  constexpr uint8_t kDdp = 1;
  constexpr uint8_t kProtection = 1;  // of RDMAP: remote protection; of DDP: tagged buffer
  const bool access = (code.layer == kRdmap || code.layer == kDdp) && code.type == kProtection;
  return access ? WcStatus::remote_access_error : WcStatus::remote_operation_error;
}

}  // namespace

RdWork::RdWork(QueuePair& queue_pair, SendQueue& sends, Counters& counters, ErrorScope scope)
    : queue_pair_(queue_pair),
      sends_(sends),
      counters_(counters),
      scope_(scope),
      sinks_(random_sip_key()) {}

void RdWork::start(uint32_t first_msn) {
  send_msn_ = record_msn_ = first_msn;
  fatal_ = false;
}

// --- Requests.

void RdWork::add(RdPeer& peer, SendEntry& entry) {
  entry.next = nullptr;
  entry.object = nullptr;
  entry.msn = entry.opcode == WrOpcode::write_record ? record_msn_++ : send_msn_;
  if (is_read(entry)) {
    RdRead* const read = reads_.take();
    read->entry = &entry;
    read->sink = sinks_.next();
    entry.object = read;
    append(peer.reads, *read);
  } else if (entry.opcode != WrOpcode::write_record) {
    ++send_msn_;
  }
  (peer.first == nullptr ? peer.first : peer.last->next) = &entry;
  peer.last = &entry;
  if (peer.cursor.entry != nullptr) return;
  peer.cursor.entry = &entry;
  peer.cursor.offset = 0;
}

bool RdWork::has_memory(const SendEntry& entry) const {
  return facts_of(entry.opcode).gathers ? queue_pair_.may_send(entry)
                                        : queue_pair_.may_write(entry.sges);
}

/// The entry's place in the send queue is free afterwards.
void RdWork::finish(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error) {
  if (peer.cursor.entry == &entry) {
    peer.cursor.entry = entry.next;
    peer.cursor.offset = 0;
  }
  if (peer.last == &entry) {
    peer.last = peer.first == &entry ? nullptr : peer.first;
    while (peer.last != nullptr && peer.last->next != &entry) peer.last = peer.last->next;
  }
  take_out(peer.first, entry);
  if (entry.object != nullptr) {
    auto* const read = static_cast<RdRead*>(entry.object);
    take_out(peer.reads, *read);
    reads_.give(read);
    entry.object = nullptr;
  }
  sends_.answered(entry, status, vendor_error);
}

/// Requests of a Read that were sent and are not answered in full.
uint32_t RdWork::unanswered(const RdPeer& peer, const SendEntry& entry) {
  if (entry.object == nullptr) return 0;
  const auto& read = *static_cast<const RdRead*>(entry.object);
  const bool begun = peer.cursor.entry == &entry;
  if (entry.length == 0) return begun ? 0 : 1;
  const uint64_t asked = begun ? peer.cursor.offset : entry.length;
  const uint64_t step = rdmap::kMaxReadRequest;
  return static_cast<uint32_t>((asked + step - 1) / step - read.received / step);
}

/// Its datagrams go as skips from now on. Returns how many Read Requests among them did not come.
uint32_t RdWork::forget_marks(RdPeer& peer, const SendEntry& entry) {
  uint32_t requests = 0;
  peer.sender.for_each_mark([&](RdMark& mark, bool came) {
    if (mark.object == nullptr || (mark.object != &entry && mark.object != entry.object)) return;
    if (what(mark) == RdWhat::request && !came) ++requests;
    mark = kNothing;
  });
  return requests;
}

/// Read Requests that the peer has, or may have, will be answered all the same.
void RdWork::fail(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error) {
  const uint32_t missing = unanswered(peer, entry);
  const uint32_t unsent = std::min(missing, forget_marks(peer, entry));
  peer.orphans += missing - unsent;
  peer.cursor.requests -= unsent;
  finish(peer, entry, status, vendor_error);
  if (status == WcStatus::local_protection_error) fatal_ = true;
}

void RdWork::fail_remotely(RdPeer& peer, SendEntry& entry, WcStatus status) {
  if (scope_ == ErrorScope::queue_pair) fatal_ = true;
  fail(peer, entry, status);
}

void RdWork::fail_all(RdPeer& peer, WcStatus status) {
  if (peer.first != nullptr && scope_ == ErrorScope::queue_pair) fatal_ = true;
  peer.sender.for_each_mark([](RdMark& mark, bool) { mark = kNothing; });
  while (peer.first != nullptr) finish(peer, *peer.first, status, 0);
  peer.cursor.requests = peer.orphans = 0;
}

bool RdWork::only_reads(const RdPeer& peer) const {
  const SendEntry* entry = peer.first;
  while (entry != nullptr && is_read(*entry)) entry = entry->next;
  return entry == nullptr;
}

bool RdWork::can_repeat(const RdPeer& peer, Time now) const {
  if (peer.sender.idle()) return peer.cursor.entry == peer.first && peer.cursor.offset == 0;
  const RdMark& oldest = peer.sender.mark(peer.sender.first_unacknowledged());
  const void* const first = peer.first == nullptr  ? nullptr
                            : is_read(*peer.first) ? peer.first->object
                                                   : static_cast<const void*>(peer.first);
  const bool whole = oldest.object == first && oldest.offset == 0;
  return whole && now - peer.sender.outstanding_since() < kSurelyUndelivered;
}

void RdWork::rewind(RdPeer& peer) {
  peer.cursor = {.entry = peer.first, .request_msn = peer.cursor.request_msn};
  peer.orphans = 0;
  for (RdRead* read = peer.reads; read != nullptr; read = read->next) read->received = 0;
}

// --- Datagrams.

bool RdWork::next(const RdCursor& cursor, size_t segment, size_t response, RdMark& mark) const {
  const bool asks = cursor.entry != nullptr && is_read(*cursor.entry);
  const bool entry_waits = asks && cursor.requests >= dgram::kMaxReadRequests;
  const bool has_entry = cursor.entry != nullptr && !entry_waits;
  if (cursor.job != nullptr && (cursor.job_next || !has_entry)) {
    const uint32_t left = cursor.job->request.length - cursor.job_offset;
    mark = mark_of(cursor.job->failed ? RdWhat::failure : RdWhat::response, cursor.job,
                   cursor.job_offset, std::min<size_t>(left, response));
    return true;
  }
  if (!has_entry) return false;
  SendEntry& entry = *cursor.entry;
  const uint64_t left = entry.length - cursor.offset;
  if (asks)
    mark = mark_of(RdWhat::request, entry.object, cursor.offset,
                   std::min<uint64_t>(left, rdmap::kMaxReadRequest));
  else
    mark = mark_of(RdWhat::segment, &entry, cursor.offset, std::min<uint64_t>(left, segment));
  mark.tag = cursor.request_msn;
  return true;
}

void RdWork::advance(RdCursor& cursor, const RdMark& mark) {
  if (what(mark) == RdWhat::response || what(mark) == RdWhat::failure) {
    cursor.job_next = false;
    cursor.job_offset += mark.length;
    const bool over = cursor.job->failed || cursor.job_offset == cursor.job->request.length;
    if (!over) return;
    cursor.job = cursor.job->next;
    cursor.job_offset = 0;
    return;
  }
  cursor.job_next = true;
  if (what(mark) == RdWhat::request) {
    ++cursor.requests;
    ++cursor.request_msn;
  }
  cursor.offset += mark.length;
  if (cursor.offset != cursor.entry->length) return;
  cursor.entry = cursor.entry->next;
  cursor.offset = 0;
}

void RdWork::acknowledged(RdPeer& peer, const RdMark& mark) {
  const uint64_t end = uint64_t{mark.offset} + mark.length;
  switch (what(mark)) {
    case RdWhat::segment: {
      auto& entry = *static_cast<SendEntry*>(mark.object);
      if (end == entry.length) finish(peer, entry, WcStatus::success, 0);
      return;
    }
    case RdWhat::response:
      if (auto& job = *static_cast<RdJob*>(mark.object); end == job.request.length) {
        counters_.add(Counter::reads_served);
        end_job(peer, job);
      }
      return;
    case RdWhat::failure:
      return end_job(peer, *static_cast<RdJob*>(mark.object));
    case RdWhat::request:
    case RdWhat::skip:
      return;
  }
}

void RdWork::refused(RdPeer& peer, const dgram::RdCode& code) {
  const RdMark mark = peer.sender.mark(peer.sender.first_unacknowledged());
  switch (what(mark)) {
    case RdWhat::segment:
      fail_remotely(peer, *static_cast<SendEntry*>(mark.object), status_of(code));
      break;
    case RdWhat::request:
      fail_remotely(peer, *static_cast<RdRead*>(mark.object)->entry, status_of(code));
      break;
    case RdWhat::response:
    case RdWhat::failure:
      end_job(peer, *static_cast<RdJob*>(mark.object));
      break;
    case RdWhat::skip:
      break;
  }
  peer.sender.recall_first();
}

// --- Reads, at their source.

Judgement RdWork::take_response(RdPeer& peer, const rdmap::DatagramSegment& segment) {
  RdRead* const read = peer.reads;
  if (read == nullptr || segment.stag != read->sink) {
    if (segment.last) answered_unknown(peer);
    return Judgement::dropped(Counter::drop_response);
  }
  SendEntry& entry = *read->entry;
  const uint64_t step = rdmap::kMaxReadRequest;
  const uint64_t part_end = std::min((read->received / step + 1) * step, entry.length);
  const uint64_t end = read->received + segment.payload.size();
  const bool fits = unanswered(peer, entry) != 0 && segment.tagged_offset == read->received &&
                    end <= part_end && segment.last == (end == part_end);
  if (!fits) {
    fail_remotely(peer, entry, WcStatus::bad_response_error);
    return Judgement::dropped(Counter::drop_response);
  }
  if (!queue_pair_.may_write(entry.sges)) {
    fail(peer, entry, WcStatus::local_protection_error);
    return Judgement::taken();
  }
  ddp::scatter(entry.sges, read->received, segment.payload);
  read->received = end;
  if (segment.last) --peer.cursor.requests;
  if (end == entry.length) end_read(peer, *read);
  return Judgement::taken();
}

void RdWork::end_read(RdPeer& peer, RdRead& read) {
  SendEntry& entry = *read.entry;
  entry.operands = ValidityMap(entry.length, {0, entry.length});
  // An honest peer has acknowledged the request by now.
  if (!peer.sender.idle()) forget_marks(peer, entry);
  finish(peer, entry, WcStatus::success, 0);
}

void RdWork::answered_unknown(RdPeer& peer) {
  if (peer.orphans == 0) return;
  --peer.orphans;
  --peer.cursor.requests;
}

void RdWork::take_failure(RdPeer& peer, STag sink, const dgram::RdCode& code) {
  RdRead* const read = peer.reads;
  if (read == nullptr || read->sink != sink || unanswered(peer, *read->entry) == 0)
    return answered_unknown(peer);
  fail_remotely(peer, *read->entry, status_of(code));
  answered_unknown(peer);
}

// --- Reads, at their target.

/// A Read of no length reads nothing: its STag and offset are not looked at (RFC 5040 section 5.2).
Judgement RdWork::judge(const rdmap::ReadRequest& request) const {
  if (request.length == 0) return Judgement::taken();
  return judge_read(ddp::check_tagged(queue_pair_.regions().find(request.source_stag),
                                      queue_pair_.domain_number(), queue_pair_.number(),
                                      Access::remote_read, request.source_offset, request.length));
}

Judgement RdWork::take_request(RdPeer& peer, const rdmap::ReadRequest& request) {
  if (const Judgement judgement = judge(request); judgement.fault) return judgement;
  if (peer.job_count >= dgram::kMaxReadRequests)
    return {.drop = Counter::drop_share, .fault = rdmap::fault::kStreamCatastrophic};
  RdJob& job = *jobs_.take();
  job.request = request;
  ++peer.job_count;
  append(peer.jobs, job);
  if (peer.cursor.job == nullptr) {
    peer.cursor.job = &job;
    peer.cursor.job_offset = 0;
  }
  return Judgement::taken();
}

void RdWork::fail_job(RdPeer& peer, RdJob& job, const dgram::RdCode& code) {
  bool to_come = false;  // whether the failure is a datagram that is yet to be cut
  for (const RdJob* later = peer.cursor.job; later != nullptr; later = later->next)
    to_come = to_come || later == &job;
  bool told = to_come;
  peer.sender.for_each_mark([&](RdMark& mark, bool came) {
    if (mark.object != &job) return;
    if (came || told) {
      mark = kNothing;
    } else {
      mark.what = static_cast<uint8_t>(RdWhat::failure);
      told = true;
    }
  });
  job.failed = true;
  job.code = code;
}

/// Nothing refers to it any more afterwards.
void RdWork::end_job(RdPeer& peer, RdJob& job) {
  peer.sender.for_each_mark([&](RdMark& mark, bool) {
    if (mark.object == &job) mark = kNothing;
  });
  if (peer.cursor.job == &job) {
    peer.cursor.job = job.next;
    peer.cursor.job_offset = 0;
  }
  take_out(peer.jobs, job);
  --peer.job_count;
  jobs_.give(&job);
}

void RdWork::drop_jobs(RdPeer& peer) {
  while (peer.jobs != nullptr) end_job(peer, *peer.jobs);
}

}  // namespace diwarp::rnic
