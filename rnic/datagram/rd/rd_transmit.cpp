// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_transmit.h"

#include <algorithm>
#include <cerrno>

#include "dgram/reorder_buffer.h"
#include "rnic/datagram/rd/rd_associations.h"
#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/rd/rd_responder.h"
#include "rnic/datagram/rd/rd_transmission_log.h"
#include "rnic/datagram/send_completion.h"

namespace diwarp::rnic {

namespace {

using dgram::MessageKind;
using dgram::RdKind;
using dgram::Scoreboard;
using dgram::Sender;
using Act = RdPlanned::Act;

/// Whether something about the peer may be due sooner, now that this was sent: news, which are
/// awaited from the first datagram under way on. More of them, or an acknowledgement, put off what
/// is due.
bool may_be_due_sooner(const RdPlanned& planned) {
  if (planned.act == Act::acknowledgement) return false;
  return planned.act != Act::fresh || planned.peer->sender().window().outstanding() == 1;
}

}  // namespace

void RdTransmit::reset() {
  resets_.clear();
  writer_.forget_message();
}

// --- What is to be sent.

void RdTransmit::fill(DatagramBuilder& builder, Time now) {
  now_ = now;
  writer_.begin(builder);
  if (sends_.pending() != nullptr) hand_over(now);
  if (!resets_.empty()) resets_.fill(builder, writer_.plan(), *this);
  // Peers that have nothing more leave the list; one that was cut short is asked again last.
  while (RdPeer* peer = builder.open() ? peers_.ready.pop_front() : nullptr) {
    if (serve(*peer, builder, now)) {
      peers_.make_ready(*peer);
      break;
    }
    peers_.ready.remove(*peer);  // the burst has what it was made ready for meanwhile
  }
  if (!peers_.ready.empty()) builder.close();
}

/// True where there is more than went into the burst.
bool RdTransmit::serve(RdPeer& peer, DatagramBuilder& builder, Time now) {
  for (;;) {
    const size_t before = builder.size();
    if (!fill_peer(peer, builder, now)) return false;
    // Nothing was added since something was found that cannot be sent, and dealt with.
    if (builder.size() != before || !builder.open()) return true;
  }
}

/// The send queue's requests become their peers'.
void RdTransmit::hand_over(Time now) {
  while (SendEntry* entry = sends_.pending()) {
    if (rdmap::info_of(entry->opcode).local) {
      // Memory that earlier requests use must not go under their feet.
      if (entry->opcode == WrOpcode::local_invalidate && !sends_.all_done()) return;
      sends_.complete(do_local(protection_, records_, *entry));
      continue;
    }
    RdPeer* const peer = peers_.find_or_add(entry->destination, RdPeers::Opener::here, now);
    if (peer == nullptr) {
      sends_.complete(WcStatus::retry_exceeded);
      continue;
    }
    if (!peer->awaited()) {
      peer->times.waits(now);
      peers_.touch(*peer);
    }
    peer->times.used(now);
    if (peer->work.requests.empty()) peer->times.advanced(now);
    requests_.add(*peer, sends_.hand_over());
    peers_.make_ready(*peer);
    if (peer->handshake().state() == dgram::Handshake::State::closed)
      associations_.open(*peer, now);
  }
}

/// True if there is, or may be, more than there was room for.
bool RdTransmit::fill_peer(RdPeer& peer, DatagramBuilder& builder, Time now) {
  if (peer.signs.open_wanted()) {
    writer_.add_open(peer, builder, now);
    return false;
  }
  if (!peer.handshake().established()) return false;
  dgram::RdHeader names = peer.handshake().header(RdKind::data);
  names.acknowledged = peer.receiver().acknowledged();
  names.window = peer.receiver().window(buffer_.room(peer.host.buffered));
  RdPeerBurst burst{.peer = peer,
                    .builder = builder,
                    .now = now,
                    .names = names,
                    .body = peer.host.path.limit(builder.max_body(peer.address()), now)};
  return fill_established(burst);
}

bool RdTransmit::fill_established(RdPeerBurst& burst) {
  burst.peer.sender().begin_burst(burst.now);
  const bool cut_short = fill_again(burst) || fill_fresh(burst);
  const bool more =
      cut_short || burst.more || burst.peer.sender().scoreboard().lost() > burst.again;
  burst.peer.sender().end_burst(burst.fresh, burst.again, more);
  if (burst.peer.sender().waits_for_pacer()) peers_.touch(burst.peer);
  // An association that was reopened meanwhile has another datagram to send.
  if (burst.peer.signs.open_wanted()) return true;
  return fill_signs(burst) || cut_short;
}

bool RdTransmit::fill_again(RdPeerBurst& burst) {
  Sender& sender = burst.peer.sender();
  bool waits = false;
  for (uint64_t at = sender.first_lost(); at != Scoreboard::kNone;
       at = sender.next_lost(at, burst.again)) {
    if (!burst.builder.open() || !may_send_again(burst, at)) return true;
    const RdPart part{.tag = sender.scoreboard().tag(at), .skip = sender.scoreboard().is_skip(at)};
    if (too_long(burst, part)) {
      // A datagram too long for the path cannot have been delivered: if all before it was,
      // everything can be cut anew. Until then it waits.
      if (at != sender.window().first_unacknowledged()) {
        waits = true;
        continue;
      }
      associations_.reopen(burst.peer, burst.now);
      return true;
    }
    if (!writer_.add_sequenced(burst, {.act = Act::again, .sequence = at, .part = part}))
      return true;
    ++burst.again;
  }
  burst.peer.signs.set_blocked(waits && burst.again == 0);
  return false;
}

/// The path carries less than it did when this was cut.
bool RdTransmit::too_long(const RdPeerBurst& burst, const RdPart& part) const {
  if (part.skip) return false;
  switch (part.tag.message.kind) {
    case MessageKind::send:
    case MessageKind::write_record:
      return part.tag.length > burst.max_payload(&sends_.at(part.tag.object));
    case MessageKind::read_response:
      return part.tag.length > burst.max_payload(nullptr);
    case MessageKind::read_request:
      return false;
  }
  return false;
}

/// Whether what stands for this number now can be sent. Where its memory is gone, its message ends
/// as soon as nothing of the peer is in the burst, and a skip stands for it.
bool RdTransmit::may_send_again(RdPeerBurst& burst, uint64_t sequence) {
  const dgram::TxTag& tag = burst.peer.sender().scoreboard().tag(sequence);
  // A Read Request names no memory that its datagram needs, and is answered whatever became of it.
  const bool needs_none = tag.message.kind == MessageKind::read_request;
  if (needs_none || burst.peer.sender().scoreboard().is_skip(sequence)) return true;
  return may_use(burst, tag);
}

/// Whether the memory of a part may be used. Where not, its message ends, as soon as nothing of the
/// peer is in the burst.
bool RdTransmit::may_use(RdPeerBurst& burst, const dgram::TxTag& tag) {
  if (tag.failure) return true;
  if (tag.message.kind == MessageKind::read_response) {
    const Verdict verdict = responder_.check(responder_.read(tag.object).request);
    if (!verdict.fault) return true;
    if (burst.planned == 0) responder_.fail(burst.peer, tag.object, *verdict.fault);
    return false;
  }
  SendEntry& entry = sends_.at(tag.object);
  if (writer_.is_cutting(entry) || requests_.has_memory(entry)) return true;
  if (burst.planned == 0) requests_.fail(burst.peer, entry, WcStatus::local_protection_error);
  return false;
}

bool RdTransmit::fill_fresh(RdPeerBurst& burst) {
  Sender& sender = burst.peer.sender();
  RdCursor cursor = burst.peer.work.cursor;
  const SendEntry* sized = nullptr;
  size_t segment = 0;
  const size_t response = cursor.has_response() ? burst.max_payload(nullptr) : 0;
  while (cursor.has_work()) {
    if (!sender.may_send(burst.fresh, burst.again)) {
      burst.more = true;
      return false;
    }
    if (cursor.entry() != sized) {
      sized = cursor.entry();
      segment = burst.max_payload(sized);
    }
    const std::optional<RdPart> part = cursor.next(sends_, segment, response);
    if (!part || !prepare(burst)) return false;
    if (!burst.builder.open() || !(part->skip || may_use(burst, part->tag))) return true;
    RdPlanned planned{
        .act = Act::fresh, .sequence = sender.window().next() + burst.fresh, .part = *part};
    if (part->tag.message.kind == MessageKind::read_request) planned.sink = requests_.next_sink();
    if (!writer_.add_sequenced(burst, planned)) return true;
    ++burst.fresh;
    cursor.advance(*part);
  }
  return false;
}

/// Memory for whatever one more datagram may be. Without it the peer waits for an acknowledgement,
/// or for a while.
bool RdTransmit::prepare(RdPeerBurst& burst) {
  const bool ready = burst.peer.sender().scoreboard().prepare(burst.fresh + 1, &sent_memory_);
  if (ready && requests_.reserve_reads(DatagramBurst::kMaxDatagrams)) return true;
  if (!ready && (burst.fresh != 0 || !burst.peer.sender().window().idle())) return false;
  burst.peer.turn.wait_for_memory(burst.now);
  peers_.touch(burst.peer);
  return false;
}

/// Acknowledges what no datagram of this burst does, and probes where nothing else will be
/// answered.
bool RdTransmit::fill_signs(RdPeerBurst& burst) {
  RdPeer& peer = burst.peer;
  const bool carried = burst.planned != 0 && peer.receiver().kept() == 0 && peer.turn.may_deliver();
  if (peer.receiver().due() == dgram::Receiver::Due::now && !carried) {
    if (!burst.builder.open()) return true;
    writer_.add_acknowledgement(burst);
  }
  if (!peer.signs.probe_wanted()) return false;
  if (!burst.builder.open()) return true;
  writer_.add_probe(burst);
  return false;
}

// --- What became of them.

void RdTransmit::sent(const DatagramTag& tag) { book(writer_.planned(tag)); }

void RdTransmit::book(const RdPlanned& planned) {
  if (planned.act == Act::reset) return resets_.remove_first();
  RdPeer& peer = *planned.peer;
  if (log_ != nullptr && planned.act <= Act::again) [[unlikely]]
    log_->sent(peer, planned.sequence, peer.sender().scoreboard().cause(planned.sequence), now_);
  switch (planned.act) {
    case Act::fresh:
      book_fresh(planned);
      break;
    case Act::again:
      peer.sender().resent(planned.sequence, now_);
      peer.receiver().told(false);
      counters_.add(Counter::rd_retransmitted);
      break;
    case Act::acknowledgement:
      peer.receiver().told(true);
      counters_.add(Counter::rd_acknowledgements);
      break;
    case Act::probe:
      peer.signs.probe_done();
      peer.sender().probe_sent();
      break;
    case Act::open:
      peer.signs.open_done();
      break;
    case Act::reset:
      break;
  }
  peer.times.used(now_);
  const bool owes = peer.receiver().due() != dgram::Receiver::Due::nothing;
  if (!owes) peer.signs.acknowledged();
  if (owes || may_be_due_sooner(planned)) peers_.touch(peer);
}

void RdTransmit::book_fresh(const RdPlanned& planned) {
  RdPeer& peer = *planned.peer;
  if (!peer.awaited()) peer.times.waits(now_);  // it may have been posted long ago
  dgram::TxTag tag = planned.part.tag;
  if (planned.part.skip) {
    peer.sender().sent_skip(tag, now_);
  } else {
    if (tag.message.kind == MessageKind::read_request)
      tag.object = requests_.add_read(peer, tag, planned.sink, peer.sender().window().next());
    peer.sender().sent(tag, now_);
  }
  peer.work.cursor.advance(planned.part);
  if (tag.message.kind == MessageKind::read_response) responder_.cut_up_to(tag);
  peer.receiver().told(false);
  peer.work.size_refusals.clear();
}

/// Its peer left the list of those that have something to send.
void RdTransmit::unsent(const DatagramTag& tag) {
  if (RdPeer* const peer = writer_.planned(tag).peer) peers_.make_ready(*peer);
}

/// A datagram that the network refuses counts as lost: it is sent again in time. But one that is
/// too long is cut anew, by what the link knows of the path by now.
void RdTransmit::refused(const DatagramTag& tag, int error) {
  const RdPlanned& planned = writer_.planned(tag);
  if (planned.act != Act::fresh || error != EMSGSIZE) return book(planned);
  RdPeer& peer = *planned.peer;
  if (peer.work.size_refusals.may_cut_anew()) return;
  peer.work.size_refusals.clear();
  const MessageKind kind = planned.part.tag.message.kind;
  const bool cut = kind == MessageKind::send || kind == MessageKind::write_record;
  if (!cut || planned.part.skip) return book(planned);
  requests_.fail(peer, sends_.at(planned.part.tag.object), WcStatus::local_qp_operation_error,
                 static_cast<uint32_t>(error));
}

}  // namespace diwarp::rnic
