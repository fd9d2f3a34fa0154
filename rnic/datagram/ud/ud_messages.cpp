// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_messages.h"

#include <algorithm>
#include <utility>

#include "ddp/placement.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/route_header.h"
#include "rnic/datagram/send_completion.h"
#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

Verdict verdict_of(ddp::SegmentFault found) {
  switch (found) {
    case ddp::SegmentFault::none:
      return Verdict::accepted();
    case ddp::SegmentFault::duplicate:
      return Verdict::dropped(Counter::drop_duplicate);
    case ddp::SegmentFault::contradiction:
      return Verdict::dropped(Counter::drop_contradiction);
    case ddp::SegmentFault::range_limit:
      return Verdict::dropped(Counter::drop_range_limit);
    case ddp::SegmentFault::too_long:
      break;
  }
  return {.drop = Counter::drop_receive_too_small, .fault = rdmap::fault::kMessageTooLong};
}

constexpr Verdict no_receive() {
  return {.drop = Counter::drop_no_receive, .fault = rdmap::fault::kNoBuffer};
}

}  // namespace

UdMessages::UdMessages(ReceiveBuffers& receives, const ddp::ProtectionContext& protection,
                       RecordTable& records, StagMissLimit& stag_misses,
                       const LoggedCounters& counters, const DatagramOptions& options,
                       const RouteHeaders* headers)
    : receives_(receives),
      protection_(protection),
      records_(records),
      stag_misses_(stag_misses),
      counters_(counters),
      timeout_(options.message_timeout),
      max_open_(options.max_open_messages),
      max_open_per_source_(options.max_open_per_source),
      headers_(headers),
      headroom_(headroom_of(headers)) {}

Verdict UdMessages::handle(const Segment& segment, Source& source, Time now) {
  if (invalidates(segment) && !may_name_memory(source, now))
    return Verdict::dropped(Counter::drop_stag_limit);  // guard(send-invalidate-guesses)
  // Before what is closed: an open message may lie at or below the floor of what is remembered.
  // guard(receive): after the next statement
  if (OpenMessage* message = find_open(source, segment.msn)) return place(segment, *message, now);
  // guard(receive)
  if (source.closed.contains(segment.msn)) return Verdict::dropped(Counter::drop_late);
  // guard(receive): condition => segment.last
  if (segment.last && segment.message_offset == 0) return deliver_single(segment, source, now);
  if (const Verdict refused = make_room(source); refused.drop) return refused;
  if (headroom_ != 0 && is_too_short(*receives_.peek())) [[unlikely]] {
    source.refuse_send(segment.msn);
    return verdict_of(ddp::SegmentFault::too_long);
  }
  return place(segment, open(segment, source, now), now);
}

/// The common case: a message in one datagram. It takes a receive only once it is known to fit.
Verdict UdMessages::deliver_single(const Segment& segment, Source& source, Time now) {
  ReceiveEntry* entry = receives_.peek();
  if (entry == nullptr) return no_receive();  // guard(receive): no_receive() => Verdict::accepted()
  const auto [fault, buffer] =
      protection_.check_untagged(entry->buffer(), headroom_, segment.payload.size());
  if (fault == ddp::BufferFault::too_long) {  // guard(receive): condition => false
    // guard(floods): => source.accept(source.closed, segment.msn);
    source.refuse_send(segment.msn);
    return verdict_of(ddp::SegmentFault::too_long);
  }
  if (fault == ddp::BufferFault::protection) {  // guard(receive): condition => false
    source.refuse_send(segment.msn);            // guard(receive)
    receives_.take(*entry);
    fail_receive(*entry, source);
    return Verdict::accepted();
  }
  receives_.take(*entry);
  buffer.place(headroom_, segment.payload);
  source.accept(source.closed, segment.msn);  // guard(receive)
  complete(*entry, segment, source, segment.payload.size(), now);
  return Verdict::accepted();
}

OpenMessage* UdMessages::find_open(Source& source, uint32_t msn) {
  for (OpenMessage* message = source.open.front(); message != nullptr;
       message = source.open.next(*message))
    if (message->msn == msn) return message;  // guard(receive): without if (message->msn == msn)
  return nullptr;
}

/// Room for one more open message of `source`, if need be in the place of another one. A source,
/// and all sources together, have to stay within their shares of the receives.
Verdict UdMessages::make_room(const Source& source) {
  const size_t available = receives_.available();
  if (available == 0) return no_receive();  // guard(receive)
  // guard(receive)
  if (source.open_count >= max_open_per_source_) return Verdict::dropped(Counter::drop_share);
  const bool has_share = receives_.shares().may_hold(available);
  // guard(receive): condition => has_share
  // guard(receive): without && has_share
  if (open_count_ < max_open_ && has_share) return Verdict::accepted();
  OpenMessage* const oldest = to_give_way(source);
  if (oldest == nullptr)
    return Verdict::dropped(open_count_ >= max_open_ ? Counter::drop_no_context
                                                     : Counter::drop_share);
  counters_.add(Counter::messages_evicted);
  abandon(*oldest);
  return Verdict::accepted();
}

/// For a message of `source`, in a full table; null where none is to. Unproven sources may be
/// forged, and get no place of a proven one. One place more than the source's own address has is no
/// reason: it would only change hands. So of n places and m addresses each has n / m at least.
OpenMessage* UdMessages::to_give_way(const Source& source) {
  if (OpenMessage* const unproven = oldest_unproven()) return unproven;
  if (!source.is_proven()) return nullptr;  // guard(floods)
  OpenMessage* const message = oldest_of_fullest_address();
  if (message == nullptr) return nullptr;  // guard(receives-held-elsewhere)
  const uint32_t most = message->source->share->open_messages;
  // guard(many-proven-sources): => return nullptr;
  // guard(proven-sources): without + 1
  return most > source.share->open_messages + 1 ? message : nullptr;
}

OpenMessage* UdMessages::oldest_unproven() {
  OpenMessage* message = by_age_.front();
  // guard(floods)
  // guard(floods): => message = nullptr;
  while (message != nullptr && message->source->is_proven()) message = by_age_.next(*message);
  return message;
}

/// Null where none is open: other queue pairs may hold the share of the receives.
OpenMessage* UdMessages::oldest_of_fullest_address() {
  OpenMessage* oldest = by_age_.front();
  // guard(fullest-address): message->source->share->open_messages >
  //     oldest->source->share->open_messages => false
  // guard(fullest-address-oldest): > oldest => >= oldest
  for (OpenMessage* message = oldest; message != nullptr; message = by_age_.next(*message))
    if (message->source->share->open_messages > oldest->source->share->open_messages)
      oldest = message;
  return oldest;
}

OpenMessage& UdMessages::open(const Segment& segment, Source& source, Time now) {
  OpenMessage& message = messages_.acquire_or_make();
  message.source = &source;
  message.info = rdmap::MessageInfo::of(segment);
  message.msn = segment.msn;
  message.last_progress = now;
  message.receive = receives_.take_receive();
  message.reassembly.open(message.receive->capacity - headroom_);
  source.open.push_back(message);
  ++source.open_count;
  ++source.share->open_messages;
  by_age_.push_back(message);
  ++open_count_;
  receives_.shares().hold();
  return message;
}

Verdict UdMessages::place(const Segment& segment, OpenMessage& message, Time now) {
  if (!(rdmap::MessageInfo::of(segment) == message.info))
    return Verdict::dropped(Counter::drop_contradiction);  // guard(receive)
  const std::optional<ddp::PlacementTarget> target = protection_.target(message.receive->sges());
  if (!target) {  // guard(receive): condition => false
    ReceiveEntry& entry = *message.receive;
    Source& source = *message.source;
    source.refuse_send(message.msn);
    release(message);
    fail_receive(entry, source);
    return Verdict::accepted();
  }
  const ddp::SegmentFault found =
      message.reassembly.add(segment.message_offset, segment.payload.size(), segment.last);
  // guard(receive): condition => found == ddp::SegmentFault::too_long
  if (found != ddp::SegmentFault::none) {
    if (found == ddp::SegmentFault::too_long) abandon(message);  // guard(receive)
    return verdict_of(found);
  }
  target->place(headroom_ + segment.message_offset, segment.payload);
  // guard(receive): without if (!segment.payload.empty())
  if (!segment.payload.empty()) progressed(message, now);  // guard(receive)
  if (message.reassembly.complete()) deliver(message, segment, now);
  return Verdict::accepted();
}

void UdMessages::progressed(OpenMessage& message, Time now) {
  message.last_progress = now;
  // guard(receive): without by_age_.remove(message); by_age_.push_back(message);
  by_age_.remove(message);
  by_age_.push_back(message);
}

void UdMessages::deliver(OpenMessage& message, const Segment& last, Time now) {
  ReceiveEntry& entry = *message.receive;
  Source& source = *message.source;
  source.accept(source.closed, message.msn);  // guard(receive)
  release(message);
  complete(entry, last, source, message.reassembly.placed(), now);
}

/// The message will never be whole: its receive is the next one again.
void UdMessages::abandon(OpenMessage& message) {
  receives_.give_back(*message.receive);  // guard(receive)
  // guard(floods): => message.source->accept(message.source->closed, message.msn);
  message.source->refuse_send(message.msn);  // guard(receive)
  release(message);
}

/// Of a message that is over.
void UdMessages::release(OpenMessage& message) {
  Source& source = *message.source;
  source.open.remove(message);
  --source.open_count;
  --source.share->open_messages;  // guard(proven-sources)
  by_age_.remove(message);
  --open_count_;
  receives_.shares().give_back();
  receives_.share_given_back();
  message.receive = nullptr;
  messages_.release(&message);
}

void UdMessages::complete(ReceiveEntry& entry, const Segment& last, Source& source, uint64_t bytes,
                          Time now) {
  if (headers_ != nullptr) [[unlikely]]  // guard(route-header)
    bytes += write_header(entry, source, bytes);
  const ReceiveOutcome outcome =
      delivered_send(protection_, records_, counters_, last, source.key.address, bytes);
  // guard(send-invalidate-guesses)
  if (invalidates(last) && !outcome.invalidated) stag_misses_.missed(source.stag_misses, now);
  receives_.complete(entry, outcome);
}

/// Before the Send invalidates anything: the receive's memory has just been checked.
uint64_t UdMessages::write_header(const ReceiveEntry& entry, const Source& source,
                                  uint64_t bytes) const {
  return headers_->write(protection_.checked_target(entry.sges()), source.key.address,
                         source.key.group, source.local, bytes);
}

/// There is no room for a header, so there is none for any message.
bool UdMessages::is_too_short(const ReceiveEntry& receive) const {
  return receive.capacity < headroom_;  // guard(route-header): => return false;
}

/// A Send with Invalidate names memory, as a Write-Record does.
bool UdMessages::may_name_memory(const Source& source, Time now) const {
  return stag_misses_.check(source.stag_misses, source.is_proven(), now) ==
         StagMissLimit::Verdict::pass;
}

/// The receive names memory that may not be written (any more): its owner has to know.
void UdMessages::fail_receive(ReceiveEntry& entry, const Source& source) {
  receives_.complete(entry,
                     {.source = source.key.address, .status = WcStatus::local_protection_error});
}

void UdMessages::expire(Time now) {
  while (OpenMessage* message = by_age_.front()) {
    // guard(receive): => return;
    // guard(receive)
    if (now - message->last_progress < timeout_) return;
    counters_.add(Counter::message_timeouts);
    abandon(*message);
  }
}

void UdMessages::reset() {
  while (OpenMessage* message = by_age_.front()) abandon(*message);
}

}  // namespace diwarp::rnic
