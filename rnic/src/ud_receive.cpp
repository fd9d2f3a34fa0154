// SPDX-License-Identifier: Apache-2.0
#include "rnic/ud_receive.h"

#include <algorithm>

#include "ddp/scatter.h"
#include "rnic/queue_pair.h"

namespace diwarp::rnic {

namespace {

constexpr Counter counter_of(ddp::SegmentFault fault) {
  switch (fault) {
    case ddp::SegmentFault::duplicate: return Counter::drop_duplicate;
    case ddp::SegmentFault::contradiction: return Counter::drop_contradiction;
    case ddp::SegmentFault::range_limit: return Counter::drop_range_limit;
    case ddp::SegmentFault::too_long:
    case ddp::SegmentFault::none: break;
  }
  return Counter::drop_receive_too_small;
}

}  // namespace

UdReceive::UdReceive(QueuePair& queue_pair, Counters& counters, const DatagramOptions& options)
    : queue_pair_(queue_pair),
      counters_(counters),
      q_key_(options.q_key),
      timeout_(options.message_timeout),
      max_open_(options.max_open_messages),
      max_open_per_source_(options.max_open_per_source),
      sources_(options.max_sources) {}

void UdReceive::handle(const llp::IncomingDatagram& datagram, Time now) {
  counters_.add(Counter::rx_datagrams);
  counters_.add(Counter::rx_bytes, datagram.bytes.size());
  const rdmap::ParsedDatagram parsed = rdmap::parse_datagram(datagram.bytes);
  if (!parsed.valid) return drop(parsed.drop_reason);
  const Segment& segment = parsed.segment;
  if (queue_pair_.state() != QpState::rts) return drop(Counter::drop_state);
  if (segment.q_key != q_key_) return drop(Counter::drop_q_key);

  Source* source = sources_.find_or_add(datagram.from, segment.incarnation, now);
  if (source == nullptr) return drop(Counter::drop_sources_full);
  // Before what is closed: an open message may lie at or below the floor of what is remembered.
  if (OpenMessage* message = find_open(*source, segment.msn)) return place(segment, *message, now);
  if (source->closed.contains(segment.msn)) return drop(Counter::drop_late);
  const bool single = segment.last && segment.message_offset == 0;
  if (single) return deliver_single(segment, *source);
  if (OpenMessage* message = open(segment, *source, now)) place(segment, *message, now);
}

/// The common case: a message in one datagram. It takes a receive only once it is known to fit.
void UdReceive::deliver_single(const Segment& segment, Source& source) {
  ReceiveEntry* entry = queue_pair_.peek_receive();
  if (entry == nullptr) return drop(Counter::drop_no_receive);
  if (segment.payload.size() > entry->capacity) {
    source.closed.close(segment.msn);
    return drop(Counter::drop_receive_too_small);
  }
  queue_pair_.take_receive();
  if (!queue_pair_.may_receive(*entry)) return fail_receive(*entry, source);
  ddp::scatter(entry->sges, 0, segment.payload);
  source.closed.close(segment.msn);
  complete(*entry, WcStatus::success, source, segment.solicited, segment.payload.size());
}

OpenMessage* UdReceive::find_open(Source& source, uint32_t msn) {
  for (OpenMessage* message = source.open.front(); message != nullptr;
       message = source.open.next(*message))
    if (message->msn == msn) return message;
  return nullptr;
}

/// A source, and all sources together, have to stay within their shares of the receives.
std::optional<Counter> UdReceive::refuse_to_open(const Source& source) const {
  const size_t receives = open_count_ + queue_pair_.available_receives();
  const size_t half = std::max<size_t>(receives / 2, 1);
  if (queue_pair_.available_receives() == 0) return Counter::drop_no_receive;
  if (open_count_ >= max_open_) return Counter::drop_no_context;
  if (open_count_ >= half || source.open_count >= max_open_per_source_) return Counter::drop_share;
  return std::nullopt;
}

OpenMessage* UdReceive::open(const Segment& segment, Source& source, Time now) {
  if (const std::optional<Counter> reason = refuse_to_open(source)) {
    drop(*reason);
    return nullptr;
  }
  if (idle_.empty()) {
    messages_.push_back(std::make_unique<OpenMessage>());
    idle_.push_back(messages_.back().get());
    idle_.reserve(messages_.size());
  }
  OpenMessage& message = *idle_.back();
  idle_.pop_back();
  message.source = &source;
  message.msn = segment.msn;
  message.solicited = segment.solicited;
  message.last_progress = now;
  message.receive = queue_pair_.take_receive();
  message.reassembly.open(message.receive->capacity);
  source.open.push_back(message);
  ++source.open_count;
  by_age_.push_back(message);
  ++open_count_;
  return &message;
}

void UdReceive::place(const Segment& segment, OpenMessage& message, Time now) {
  if (segment.solicited != message.solicited) return drop(Counter::drop_contradiction);
  if (!queue_pair_.may_receive(*message.receive)) {
    ReceiveEntry& entry = *message.receive;
    const Source& source = *message.source;
    close(message);
    return fail_receive(entry, source);
  }
  const ddp::SegmentFault fault =
      message.reassembly.add(segment.message_offset, segment.payload.size(), segment.last);
  if (fault != ddp::SegmentFault::none) {
    drop(counter_of(fault));
    if (fault == ddp::SegmentFault::too_long) abandon(message);
    return;
  }
  ddp::scatter(message.receive->sges, segment.message_offset, segment.payload);
  message.last_progress = now;
  by_age_.remove(message);
  by_age_.push_back(message);
  if (message.reassembly.complete()) deliver(message);
}

void UdReceive::deliver(OpenMessage& message) {
  ReceiveEntry& entry = *message.receive;
  const Source& source = *message.source;
  close(message);
  complete(entry, WcStatus::success, source, message.solicited, message.reassembly.placed());
}

/// The message will never be whole: its receive is the next one again.
void UdReceive::abandon(OpenMessage& message) {
  queue_pair_.give_back_receive(*message.receive);
  close(message);
}

/// Nothing of the message is taken any more.
void UdReceive::close(OpenMessage& message) {
  Source& source = *message.source;
  source.closed.close(message.msn);
  source.open.remove(message);
  --source.open_count;
  by_age_.remove(message);
  --open_count_;
  message.receive = nullptr;
  idle_.push_back(&message);
}

void UdReceive::complete(ReceiveEntry& entry, WcStatus status, const Source& source,
                         bool solicited, uint64_t bytes) {
  WorkCompletion completion;
  completion.status = status;
  completion.solicited = solicited;
  completion.byte_count = static_cast<uint32_t>(bytes);
  completion.opcode = WcOpcode::recv;
  completion.source = source.key.address;
  queue_pair_.complete_receive(entry, completion);
}

/// The receive names memory that may not be written (any more): its owner has to know.
void UdReceive::fail_receive(ReceiveEntry& entry, const Source& source) {
  complete(entry, WcStatus::local_protection_error, source, false, 0);
}

void UdReceive::expire(Time now) {
  while (OpenMessage* message = by_age_.front()) {
    if (now - message->last_progress < timeout_) return;
    drop(Counter::message_timeouts);
    abandon(*message);
  }
}

std::optional<Time> UdReceive::next_expiry() {
  const OpenMessage* oldest = by_age_.front();
  if (oldest == nullptr) return std::nullopt;
  const bool never = timeout_ > Time::max() - oldest->last_progress;
  return never ? Time::max() : oldest->last_progress + timeout_;
}

void UdReceive::reset() {
  while (OpenMessage* message = by_age_.front()) abandon(*message);
  sources_.clear();
}

}  // namespace diwarp::rnic
