// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_queue_pair.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/random.h"
#include "diwarp/error.h"
#include "rdmap/terminate.h"

namespace diwarp::rnic {

namespace {

using dgram::Handshake;
using dgram::RdKind;
using dgram::Receiver;

/// How long an acknowledgement waits for data to travel with, where the engine takes so long to
/// come back.
constexpr Duration kAcknowledgeWithin = std::chrono::microseconds(500);

const ReliableOptions& checked(const ReliableOptions& options) {
  const auto refuse = [](const std::string& message) {
    throw Error(make_error_code(Errc::invalid_argument), message);
  };
  if (options.peer_timeout <= Duration::zero() || options.keep_alive <= Duration::zero())
    refuse("peer_timeout and keep_alive must be above zero");
  if (options.idle_timeout < std::chrono::seconds(1))
    refuse("An RD queue pair forgets a peer after a second at the earliest: see idle_timeout");
  if (options.max_peers == 0 || options.max_peers_per_address == 0)
    refuse("max_peers and max_peers_per_address must be at least 1");
  if (options.message_timeout < Duration::zero())
    refuse("message_timeout must be above zero, or zero for the peer_timeout");
  check_range("receive_window", options.receive_window, 1, Receiver::kMaxWindow);
  return options;
}

/// The peer acknowledged this part of a message.
void finish(RdRequests& requests, RdResponder& responder, RdPeer& peer, const dgram::TxTag& tag) {
  switch (tag.message.kind) {
    case dgram::MessageKind::send:
    case dgram::MessageKind::write_record:
      return requests.acknowledged(peer, tag);
    case dgram::MessageKind::read_response:
      return responder.acknowledged(peer, tag);
    case dgram::MessageKind::read_request:
      return;
  }
}

/// The peer refuses the first datagram that it has not acknowledged: its message is given up, and a
/// skip follows at once.
void refuse_first(RdRequests& requests, RdResponder& responder, RdPeer& peer, TerminateCode code) {
  const uint64_t first = peer.sender().window().first_unacknowledged();
  const dgram::TxTag tag = peer.sender().scoreboard().tag(first);
  if (!peer.sender().scoreboard().is_skip(first)) {
    if (tag.message.kind == dgram::MessageKind::read_response)
      responder.refused(peer, tag, code);
    else
      requests.refused(peer, tag, code);
  }
  peer.sender().scoreboard().recall_first();
}

/// Where the peer has not needed it for a while.
void give_back_memory(RdResponder& responder, dgram::ReorderBuffer& buffer, RdPeer& peer,
                      Time now) {
  if (now >= saturating_add(peer.sent_memory_unused_since(), RdTimeouts::kQuiet)) {
    peer.sender().scoreboard().release_memory();
    responder.trim();
  }
  if (now >= saturating_add(peer.early_memory_unused_since(), RdTimeouts::kQuiet)) {
    peer.receiver().release_memory(buffer, peer.host.buffered);
    buffer.shrink();
  }
}

/// A peer's timer is never later than what is due next; often it is earlier, and looks again.
void arm(TimerQueue& timers, RdPeer& peer, Time due) {
  if (peer.timer.armed() && peer.timer.deadline() <= due) return;
  timers.arm(peer.timer, due);
}

}  // namespace

RdQueuePair::RdQueuePair(std::shared_ptr<ProtectionDomain> domain,
                         const provider::QueuePairInit& init)
    : DatagramQueuePair(std::move(domain), init),
      timeouts_(RdTimeouts::of(checked(init.reliable))),
      fragments_(init.datagram.jumbo),
      transmission_log_(RdTransmissionLog::open(init.reliable.transmission_log)),
      buffer_(init.reliable.max_buffer),
      sent_memory_(init.reliable.max_sent_memory),
      peers_(*this, receives().shares(), init),
      requests_(protection(), sends_, init.reliable.error_scope),
      responder_(protection(), counters()),
      delivery_(receives(), protection(), peers_, records(), requests_, responder_, errors(),
                logged(), init.datagram, route_headers()),
      associations_(peers_, identity(), requests_, responder_, delivery_, buffer_, logged(),
                    timeouts_.peer_timeout),
      transmit_(protection(), records(), sends_, peers_, requests_, responder_, associations_,
                buffer_, sent_memory_, counters(), transmission_log_.get()),
      order_(receives(), records(), peers_, requests_, delivery_, buffer_, logged(), waker()) {
  sender().add(transmit_);
  attach_to_engine();
}

RdQueuePair::~RdQueuePair() {
  acknowledge_all();
  detach_from_engine();
}

/// Peers learn of what was delivered: nobody would answer them any more, and their requests failed.
void RdQueuePair::acknowledge_all() {
  engine().exclusively([this] {
    if (state() != QpState::rts) return;
    peers_.for_each([this](RdPeer& peer) {
      const bool owes =
          peer.handshake().established() && peer.receiver().due() != Receiver::Due::nothing;
      if (!owes) return;
      peer.receiver().ask_now();  // guard(rd-last-acknowledgement): => return;
      peers_.make_ready(peer);
    });
    if (!peers_.ready.empty()) DatagramQueuePair::transmit(engine().clock().now());
  });
}

void RdQueuePair::start_msns() {
  transmit_.reset();
  requests_.set_first_msn(system_random_u32());
}

void RdQueuePair::forget_peers() {
  peers_.for_each([this](RdPeer& peer) {
    associations_.drop(peer);
    engine().timers().cancel(peer.timer);
  });
  peers_.clear();
  buffer_.shrink();
  transmit_.reset();
}

void RdQueuePair::forget(RdPeer& peer) {
  log::tell(LogLevel::info, subject(), [&] {
    return "RD peer " + peer.address().to_string() +
           " is forgotten: nothing was exchanged for long";
  });
  associations_.drop(peer);
  engine().timers().cancel(peer.timer);
  peers_.erase(peer);
  counters().add(Counter::rd_forgotten);
  if (peers_.await_receives()) wake();  // it may have held a receive
}

bool RdQueuePair::forget_for(const Address& newcomer, Time now) {
  RdPeer* const unused = peers_.find_unused(RdTimeouts::kQuiet, newcomer, now);
  if (unused != nullptr) forget(*unused);
  return unused != nullptr;
}

/// After anything that may have failed: the engine's burst must not be under way.
bool RdQueuePair::end_if_fatal() {
  if (!requests_.take_fatal() || state() != QpState::rts) return false;
  enter_error();
  return true;
}

// --- Receiving.

size_t RdQueuePair::receive(Time now) {
  // The application has had its turn since the last step, and nothing took these along.
  while (RdPeer* peer = peers_.soon.pop_front()) {
    if (peer->receiver().due() == Receiver::Due::nothing) continue;
    peer->receiver().ask_now();
    peers_.make_ready(*peer);
  }
  if (!peers_.ready.empty()) wake();
  return DatagramQueuePair::receive(now);
}

void RdQueuePair::take_datagram(const dgram::OpenedEnvelope& envelope,
                                const llp::IncomingDatagram& datagram, Time now) {
  if (datagram.group) return drop(Counter::drop_group, datagram.from);
  switch (envelope.labels.datagram_class) {
    case dgram::DatagramClass::reliable:
      return take_reliable(envelope, datagram, now);
    case dgram::DatagramClass::control:
      return take_control(envelope, datagram, now);
    case dgram::DatagramClass::unreliable:
      return drop(Counter::drop_class, datagram.from);
  }
}

void RdQueuePair::take_control(const dgram::OpenedEnvelope& envelope,
                               const llp::IncomingDatagram& datagram, Time now) {
  const dgram::ParsedControl parsed = dgram::parse_control(envelope.body);
  if (!parsed.valid) return drop(parsed.drop_reason, datagram.from);
  if (parsed.type != dgram::ControlType::challenge)
    return drop(Counter::drop_control, datagram.from);
  RdPeer* peer = peers_.find(datagram.from);
  while (peer != nullptr &&
         !peer->handshake().challenged(envelope.labels.incarnation, parsed.challenge, now))
    peer = RdPeers::next_incarnation(*peer);
  if (peer == nullptr) return drop(Counter::drop_control, datagram.from);
  peer->local = datagram.local;
  peer->signs.want_open();
  peers_.make_ready(*peer);
  peers_.touch(*peer);
}

void RdQueuePair::take_reliable(const dgram::OpenedEnvelope& envelope,
                                const llp::IncomingDatagram& datagram, Time now) {
  const dgram::ParsedRdHeader parsed = dgram::parse_rd_header(envelope.body);
  if (parsed.fault != dgram::RdHeaderFault::none)
    return drop(Counter::drop_rd_header, datagram.from);
  const dgram::RdHeader& header = parsed.header;
  if (envelope.labels.flags != 0 && header.kind != RdKind::data)
    return drop(Counter::drop_flags, datagram.from);
  if (header.kind == RdKind::open) return take_open(parsed, envelope, datagram, now);

  RdPeer* const peer = peers_.find_by_epoch(datagram.from, header.peer_epoch);
  const uint32_t incarnation = envelope.labels.incarnation;
  const uint32_t own = identity().incarnation(datagram.from);
  switch (peer == nullptr ? Handshake().check(header, incarnation, own)
                          : peer->handshake().check(header, incarnation, own)) {
    case Handshake::Verdict::accepted:
      associations_.accepted(*peer, now);
      [[fallthrough]];
    case Handshake::Verdict::ours:
      peer->local = datagram.local;  // guard(rd-local-address)
      return take_ours(*peer, parsed, envelope.labels.flags, now);
    // guard(rd-reset)
    case Handshake::Verdict::ended:
      if (!peer->sender().window().was_sent(header.sequence))
        return drop(Counter::drop_rd_association, datagram.from);
      associations_.ended(*peer, header, envelope.labels.incarnation, now);
      if (peers_.await_receives()) wake();  // it may have held a receive
      return;
    case Handshake::Verdict::unknown:
      take_unknown(header, envelope.labels.incarnation, datagram.sender(), now);
      [[fallthrough]];
    case Handshake::Verdict::stale:
      return drop(Counter::drop_rd_association, datagram.from);
  }
}

void RdQueuePair::take_open(const dgram::ParsedRdHeader& parsed,
                            const dgram::OpenedEnvelope& envelope,
                            const llp::IncomingDatagram& datagram, Time now) {
  const dgram::Challenge proof = dgram::decode_rd_proof(parsed.rest);
  const uint32_t incarnation = envelope.labels.incarnation;
  const bool valid = parsed.header.peer_incarnation == identity().incarnation(datagram.from) &&
                     incarnation != 0 &&
                     validation().valid(proof.cookie, datagram.from, incarnation, now);
  if (!valid) return challenge(proof.nonce, incarnation, datagram, now);
  counters().add(Counter::echoes_received);
  RdPeer* const peer = peers_.find_incarnation(datagram.from, incarnation);
  RdPeer* const present =
      peer != nullptr ? peer : peers_.find_or_add(datagram.from, RdPeers::Opener::there, now);
  if (present == nullptr) return drop(Counter::drop_sources_full, datagram.from);
  associations_.take_open(*present, parsed.header, incarnation, now);
  RdPeer* const opened = peers_.find_incarnation(datagram.from, incarnation);
  if (opened != nullptr) opened->local = datagram.local;
}

void RdQueuePair::challenge(uint64_t nonce, uint32_t incarnation,
                            const llp::IncomingDatagram& datagram, Time now) {
  const bool posted = control().post_challenge(
      datagram.sender(),
      {.nonce = nonce, .cookie = validation().make(datagram.from, incarnation, now)},
      datagram.bytes.size());
  if (!posted) return drop(Counter::drop_no_context, datagram.from);
  logged().add(Counter::challenges_sent, datagram.from);
}

void RdQueuePair::take_unknown(const dgram::RdHeader& header, uint32_t incarnation,
                               const llp::Destination& from, Time now) {
  dgram::RdHeader reset = dgram::rd_reset_for(header, incarnation);
  reset.flags = RdAssociations::flags(peers_.find_incarnation(from.address, incarnation), now);
  transmit_.resets().post(from, reset);
  wake();
}

void RdQueuePair::take_ours(RdPeer& peer, const dgram::ParsedRdHeader& parsed, uint8_t flags,
                            Time now) {
  const dgram::RdHeader& header = parsed.header;
  const bool has_map = header.kind == RdKind::acknowledgement;
  const dgram::RdMap map = has_map ? dgram::decode_rd_map(parsed.rest) : dgram::RdMap();
  const auto news =
      peer.sender().acknowledged(header.acknowledged, header.window, has_map ? &map : nullptr, now);
  if (news == dgram::Sender::News::invalid_ack)
    return drop(Counter::drop_rd_invalid_ack, peer.address());
  peer.receiver().peer_told(header.window);
  if (transmission_log_ && news == dgram::Sender::News::progress) [[unlikely]]
    transmission_log_->acknowledged(peer, now);
  peer.times.heard(now);
  peer.signs.heard();
  peer.sender().timer().heard(now);
  while (const auto released = peer.sender().scoreboard().release())
    if (!released->given_up) finish(requests_, responder_, peer, released->tag);
  if (header.kind == RdKind::acknowledgement) peer.sender().acknowledged_alone();
  if (const auto payload = peer.sender().take_black_hole(); payload && !fragments_)
    shorten_datagrams(peer, *payload, now);
  bool refuses = false;
  if (header.sequenced())
    order_.take_sequenced(peer, parsed, flags, now);
  else
    refuses = take_sign(peer, parsed, now);
  if (peer.work.rewinds.take_progress()) peer.times.advanced(now);
  const bool progress = news == dgram::Sender::News::progress;
  const bool may_go_on = refuses || peer.receiver().due() == Receiver::Due::now ||
                         peer.work.cursor.has_work() || (progress && peer.awaits_progress());
  if (may_go_on) peers_.make_ready(peer);
  peers_.touch(peer);
}

/// An acknowledgement, refusal or probe. True where the first datagram that is not acknowledged is
/// refused.
bool RdQueuePair::take_sign(RdPeer& peer, const dgram::ParsedRdHeader& parsed, Time now) {
  const dgram::RdHeader& header = parsed.header;
  const bool of_first = !peer.sender().window().idle() &&
                        header.acknowledged + 1 ==
                            static_cast<uint32_t>(peer.sender().window().first_unacknowledged());
  // guard(rd-send-waits): condition => false
  if (header.waits() && of_first) peer.sender().first_waits(now);
  const bool refuses =
      header.kind == RdKind::refusal && of_first && header.sequence == header.acknowledged + 1;
  if (refuses)
    refuse_first(requests_, responder_, peer,
                 rdmap::terminate_code(dgram::decode_rd_code(parsed.rest)));
  if (header.kind == RdKind::probe) peer.receiver().ask_now();
  return refuses;
}

/// Those under way are cut anew as soon as they are found to be too long for the path.
void RdQueuePair::shorten_datagrams(RdPeer& peer, uint32_t payload, Time now) {
  const size_t longest =
      peer.host.path.limit(dgram::Envelope::max_body(link().max_datagram(peer.address())), now);
  const size_t body =
      dgram::kRdHeaderBytes + rdmap::segment_header_bytes(rdmap::Opcode::send, true) + payload;
  const auto bytes = static_cast<uint32_t>(std::min(body, longest) + dgram::Envelope::kOverhead);
  const uint16_t shorter = RdPath::shorter(peer.address(), bytes);
  if (shorter != 0) peer.host.path.shorten(shorter, now);
  network().black_hole(peer.address(), bytes, shorter);
  if (!peer.sender().window().idle())
    peer.sender().scoreboard().recall(peer.sender().window().first_unacknowledged());
  peers_.make_ready(peer);
}

// --- Sending.

Served RdQueuePair::transmit(Time now) {
  if (peers_.any_held() && state() == QpState::rts) order_.resume_held(now);
  // guard(rd-send-waited)
  if (end_if_fatal()) return {.pending = Pending::nothing};  // nothing of it is acknowledged
  Served served = DatagramQueuePair::transmit(now);
  look_at_touched(now);
  if (end_if_fatal()) served.pending = Pending::nothing;
  return served;
}

/// Where something is to be sent, the transmission that follows looks at all of them.
void RdQueuePair::batch_taken(Time now) {
  if (peers_.ready.empty())
    look_at_touched(now);
  else
    wake();
  end_if_fatal();
}

/// Decides when what was received is acknowledged, and when to look at the peers, and at the send
/// queue, again.
void RdQueuePair::look_at_touched(Time now) {
  while (RdPeer* peer = peers_.touched.pop_front()) {
    const Receiver::Due due = peer->receiver().due();
    if (due == Receiver::Due::now) {
      peers_.make_ready(*peer);
    } else if (due == Receiver::Due::soon && !peer->signs.acknowledges()) {
      peer->signs.acknowledge_at(now + kAcknowledgeWithin);
      if (!static_cast<ListNode<RdSoonTag>&>(*peer).linked()) peers_.soon.push_back(*peer);
    }
    arm(engine().timers(), *peer, timeouts_.next_due(*peer));
  }
  const bool head_may_go_on = requests_.take_ended() && sends_.pending() != nullptr;
  if (head_may_go_on || !peers_.ready.empty()) wake();
}

// --- Time.

void RdQueuePair::on_peer_timer(RdPeer& peer, Time now) {
  const bool idle = now - peer.times.quiet_since() >= timeouts_.forgotten_after(peer);
  if (idle && !peer.awaited() && !peer.has_work()) return forget(peer);
  if (idle && !peer.awaited()) peer.times.used(now);  // its datagrams wait, e.g. for their rate
  run_timers(peer, now);
  look_at_touched(now);
  end_if_fatal();
}

void RdQueuePair::run_timers(RdPeer& peer, Time now) {
  peers_.touch(peer);
  give_back_memory(responder_, buffer_, peer, now);
  if (now >= timeouts_.give_up_at(peer)) {
    associations_.give_up(peer, now);
    peer.local = 0;  // it may be one that this host had
    return wake();
  }
  if (now >= timeouts_.give_up_early_at(peer)) {
    associations_.give_up_early(peer, now);
    return wake();
  }
  if (peer.lacks_segments() &&
      now - peer.inbound.message().last_progress >= timeouts_.message_timeout) {
    delivery_.expire(peer);
    wake();
  }
  if (peer.handshake().state() == Handshake::State::opening) {
    if (now < peer.handshake().open_deadline(timeouts_.keep_alive)) return;
    peer.handshake().on_open_deadline(now);
    peer.signs.want_open();
    return peers_.make_ready(peer);
  }
  if (!peer.handshake().established()) return;
  if (peer.turn.retry_at() <= now) order_.retry(peer, now);
  if (peer.signs.acknowledge_at() <= now) {
    peer.signs.acknowledged();
    if (peer.receiver().due() != Receiver::Due::nothing) peer.receiver().ask_now();
  }
  const bool probes = peer.sender().on_deadline(now, peer.more_awaited(), timeouts_.keep_alive);
  if (probes || peer.signs.blocked()) peer.signs.want_probe();
  peers_.make_ready(peer);
}

// --- What applications ask.

std::vector<ReliablePeer> RdQueuePair::peers() {
  return engine().exclusively([this] {
    std::vector<ReliablePeer> all;
    all.reserve(peers_.size());
    peers_.for_each([&](const RdPeer& peer) {
      all.push_back({.address = peer.address(),
                     .incarnation = peer.handshake().peer_incarnation(),
                     .round_trip = peer.sender().round_trip().smoothed(),
                     .congestion_window = peer.sender().congestion().window(),
                     .in_flight = peer.sender().scoreboard().in_flight(),
                     .retransmitted = peer.sender().retransmitted()});
    });
    return all;
  });
}

}  // namespace diwarp::rnic
