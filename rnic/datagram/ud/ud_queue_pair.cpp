// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_queue_pair.h"

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace diwarp::rnic {

namespace {

SourceKey key_of(const llp::IncomingDatagram& datagram, uint32_t incarnation) {
  // A datagram to a group by the queue pair's own link has a number that no joined group has.
  const uint32_t unnumbered = datagram.group ? UINT32_MAX : 0;
  // guard(receive): incarnation => 0
  // guard(receive): datagram.from => datagram.from.with_port(1)
  // guard(group-incarnation): datagram.via != 0 ? datagram.via : unnumbered => 0
  return {datagram.from, incarnation, datagram.via != 0 ? datagram.via : unnumbered};
}

}  // namespace

// guard(counted-keys): random_sip_key() => SipKey{}
UdQueuePair::UdQueuePair(std::shared_ptr<ProtectionDomain> domain,
                         const provider::QueuePairInit& init)
    : DatagramQueuePair(std::move(domain), init),
      sources_(SourceLimits::of(init.datagram), random_sip_key()),
      stag_misses_(init.datagram.stag_misses_per_source, init.datagram.stag_misses,
                   init.datagram.source_timeout),
      messages_(receives(), protection(), records(), stag_misses_, logged(), init.datagram,
                route_headers()),
      reader_(protection(), sends_, identity(), counters(), init.datagram.read,
              init.datagram.max_record_ranges, waker()),
      responder_(protection(), validation(), control(), errors(), logged(), init.datagram.read,
                 waker()),
      transmit_(protection(), records(), sends_, reader_) {
  sender().add(transmit_);
  sender().add(reader_);
  sender().add(responder_);
  attach_to_engine();
}

UdQueuePair::~UdQueuePair() { detach_from_engine(); }

void UdQueuePair::start_msns() {
  transmit_.set_first_msn(system_random_u32());
  reader_.set_first_msn(system_random_u32());
}

void UdQueuePair::forget_peers() {
  messages_.reset();
  reader_.reset();
  responder_.reset();
  sources_.clear();  // guard(receive)
}

void UdQueuePair::expire(Time now) {
  messages_.expire(now);
  records().expire(now);
  reader_.expire(now);
  sources_.expire(now);  // guard(sources)
}

Time UdQueuePair::next_expiry() {
  return std::min(std::min(messages_.next_expiry(), records().next_expiry()),
                  std::min(reader_.next_expiry(), sources_.next_expiry()));
}

// --- Receiving.

void UdQueuePair::take_datagram(const dgram::OpenedEnvelope& envelope,
                                const llp::IncomingDatagram& datagram, Time now) {
  switch (envelope.labels.datagram_class) {
    case dgram::DatagramClass::unreliable:
      return take_segment(envelope, datagram, now);
    case dgram::DatagramClass::control:
      if (const Verdict verdict = take_control(envelope, datagram, now); verdict.drop)
        drop(*verdict.drop, datagram.from);
      return;
    case dgram::DatagramClass::reliable:
      return drop(Counter::drop_class, datagram.from);
  }
}

void UdQueuePair::take_segment(const dgram::OpenedEnvelope& envelope,
                               const llp::IncomingDatagram& datagram, Time now) {
  const rdmap::ParsedSegment parsed = rdmap::parse_segment(envelope.labels.flags, envelope.body);
  if (!parsed.valid) return drop(parsed.drop_reason, datagram.from);  // guard(datagram)
  report_verdict(handle_segment(parsed.segment, envelope, datagram, now), parsed.segment, datagram,
                 now);
}

Verdict UdQueuePair::handle_segment(const rdmap::DatagramSegment& segment,
                                    const dgram::OpenedEnvelope& envelope,
                                    const llp::IncomingDatagram& datagram, Time now) {
  const rdmap::OpcodeInfo& info = rdmap::info_of(segment.opcode);
  const bool is_response = info.type == rdmap::MessageType::read_response;
  const bool is_read = is_response || info.type == rdmap::MessageType::read_request;
  // A Send with Invalidate has no room for a Q_Key: it counts as having 0.
  const bool is_send = !info.tagged && !is_read;
  // guard(q-key)
  // guard(reads): without is_send &&
  if (is_send && segment.q_key != q_key()) return Verdict::dropped(Counter::drop_q_key);
  // Nobody reads from a group, and nothing that came by way of one is answered.
  if (is_read && datagram.group) return Verdict::dropped(Counter::drop_group);  // guard(groups)
  // A response makes no source: the request has said what it may do.
  if (is_response) return reader_.handle_response(segment, datagram.from, now);
  Counter reason{};
  Source* source = sources_.find_or_add(key_of(datagram, envelope.labels.incarnation), now, reason);
  if (source == nullptr) return Verdict::dropped(reason);
  source->local = datagram.local;  // guard(ud-local-address)
  return dispatch(segment, *source, datagram, now);
}

Verdict UdQueuePair::dispatch(const rdmap::DatagramSegment& segment, Source& source,
                              const llp::IncomingDatagram& datagram, Time now) {
  switch (rdmap::info_of(segment.opcode).type) {
    case rdmap::MessageType::write_record:
    case rdmap::MessageType::read_request:
      return take_tagged(segment, source, datagram, now);
    default:
      return messages_.handle(segment, source, now);
  }
}

/// Segments that name memory here. While too many guess STags, newcomers' Reads may go on once they
/// have shown that they are at their address.
Verdict UdQueuePair::take_tagged(const rdmap::DatagramSegment& segment, Source& source,
                                 const llp::IncomingDatagram& datagram, Time now) {
  using Limit = StagMissLimit::Verdict;
  const bool is_read = rdmap::info_of(segment.opcode).type == rdmap::MessageType::read_request;
  const bool validated = source.is_validated(now);
  const size_t bytes = datagram.bytes.size();
  const Limit limit = stag_misses_.check(source.stag_misses, source.is_proven(), now);
  if (limit == Limit::all_exhausted && is_read && !validated)
    return responder_.challenge(source, segment.request, bytes, now);  // guard(guesses)
  // guard(guesses)
  if (limit != Limit::pass) return Verdict::dropped(Counter::drop_stag_limit);
  Verdict verdict = is_read ? responder_.handle(segment, source, bytes, now)
                            : records().handle(segment, source, now);
  if (!verdict.fault) return verdict;
  stag_misses_.missed(source.stag_misses, now);  // guard(guesses)
  // guard(errors): without if (!validated)
  if (!validated) verdict.told = concealed_fault(segment.opcode);  // guard(errors)
  return verdict;
}

Verdict UdQueuePair::take_control(const dgram::OpenedEnvelope& envelope,
                                  const llp::IncomingDatagram& datagram, Time now) {
  const dgram::ParsedControl parsed = dgram::parse_control(envelope.body);
  if (!parsed.valid) return Verdict::dropped(parsed.drop_reason);    // guard(reads)
  if (datagram.group) return Verdict::dropped(Counter::drop_group);  // guard(groups)
  switch (parsed.type) {
    case dgram::ControlType::echo:
      return take_echo(parsed.challenge, datagram.from, envelope.labels.incarnation, now);
    case dgram::ControlType::challenge:
      return reader_.handle_challenge(parsed.challenge, datagram.from)
                 ? Verdict::accepted()
                 : Verdict::dropped(Counter::drop_control);
    case dgram::ControlType::error:
      return take_error(parsed.rest, datagram.from);
  }
  return Verdict::dropped(Counter::drop_control);
}

Verdict UdQueuePair::take_echo(const dgram::Challenge& echo, const Address& from,
                               uint32_t incarnation, Time now) {
  // Only a good one makes a source.
  if (!validation().valid(echo.cookie, from, incarnation, now))
    return Verdict::dropped(Counter::drop_control);  // guard(reads)
  Counter reason{};
  Source* source = sources_.find_or_add({from, incarnation}, now, reason);
  if (source == nullptr) return Verdict::dropped(reason);
  // guard(read-progress): => source->validated_until = Time::max();
  source->validated_until = now + dgram::AddressValidation::kValidFor;
  counters().add(Counter::echoes_received);
  return Verdict::accepted();
}

Verdict UdQueuePair::take_error(ConstBytes bytes, const Address& from) {
  const rdmap::ParsedError parsed = rdmap::parse_error(bytes);
  if (!parsed.valid) return Verdict::dropped(parsed.drop_reason);  // guard(reads)
  logged().add(Counter::errors_received, from, parsed.error.code);
  if (!reader_.handle_error(parsed.error, from)) errors().received(from, parsed.error);
  return Verdict::accepted();
}

}  // namespace diwarp::rnic
