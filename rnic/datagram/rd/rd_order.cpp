// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_order.h"

#include <new>

#include "rnic/datagram/rd/rd_requests.h"
#include "rnic/datagram/record_table.h"
#include "rnic/queues/receive_buffers.h"

namespace diwarp::rnic {

namespace {

using dgram::RdKind;
using dgram::Receiver;

/// Peers that wait for the limit of STag misses and go on within one step, so that it stays short.
constexpr int kResumedAtOnce = 64;

}  // namespace

void RdOrder::take_sequenced(RdPeer& peer, const dgram::ParsedRdHeader& parsed, uint8_t flags,
                             Time now) {
  const dgram::RdHeader& header = parsed.header;
  switch (peer.receiver().arrived(header.sequence)) {
    case Receiver::Arrival::duplicate:
      return counters_.add(Counter::drop_duplicate, peer.address());
    case Receiver::Arrival::outside:
      return counters_.add(Counter::drop_rd_window, peer.address());
    case Receiver::Arrival::early:
      peer.sender().peer_advanced();
      return keep(peer, header.sequence, header.kind, flags, parsed.rest, now);
    case Receiver::Arrival::next:
      peer.sender().peer_advanced();
      break;
  }
  if (peer.turn.refusing() && header.kind != RdKind::skip) return peer.receiver().ask_now();
  if (peer.turn.held()) return keep(peer, header.sequence, header.kind, flags, parsed.rest, now);
  if (deliver(peer, header.kind, flags, parsed.rest, now))
    deliver_kept(peer, now);
  else if (peer.turn.held())
    keep(peer, header.sequence, header.kind, flags, parsed.rest, now);
}

void RdOrder::keep(RdPeer& peer, uint32_t sequence, RdKind kind, uint8_t flags, ConstBytes bytes,
                   Time now) {
  dgram::BufferShare& share = peer.host.buffered;
  dgram::BufferedDatagram* const kept = buffer_.keep(kind, flags, bytes, share);
  if (kept == nullptr) return counters_.add(Counter::drop_no_context, peer.address());
  if (peer.receiver().kept() == 0) peer.times.lacks_next(now);
  if (peer.receiver().keep(peer.receiver().number(sequence), kept, buffer_, share)) return;
  buffer_.release(kept, share);
  counters_.add(Counter::drop_no_context, peer.address());
}

/// Each step that takes memory for a datagram does so before it changes anything else.
RdDelivery::Outcome RdOrder::try_deliver(RdPeer& peer, RdKind kind, uint8_t flags, ConstBytes bytes,
                                         Time now) try {
  return delivery_.deliver(peer, kind, flags, bytes, now);
} catch (const std::bad_alloc&) {
  counters_.add(Counter::drop_no_memory, peer.address());
  return RdDelivery::Outcome::no_memory;
}

/// True where the next one may be delivered as well.
bool RdOrder::deliver(RdPeer& peer, RdKind kind, uint8_t flags, ConstBytes bytes, Time now) {
  if (kind == RdKind::skip) peer.turn.end_refusal();
  const RdDelivery::Outcome outcome = try_deliver(peer, kind, flags, bytes, now);
  if (outcome == RdDelivery::Outcome::delivered) {
    peer.receiver().delivered();
    peer.times.delivered(now);
    return true;
  }
  if (outcome != RdDelivery::Outcome::refused) {
    hold(peer, outcome, now);
    return false;
  }
  peer.turn.begin_refusal();
  peer.times.lacks_next(now);
  peer.receiver().ask_now();
  return false;
}

void RdOrder::deliver_kept(RdPeer& peer, Time now) {
  while (peer.turn.may_deliver() && !requests_.fatal()) {
    dgram::BufferedDatagram* const kept = peer.receiver().take_next();
    if (kept == nullptr) return;
    const bool delivered = deliver(peer, kept->kind, kept->flags, kept->bytes(), now);
    if (!delivered && peer.turn.held()) {
      peer.receiver().keep(peer.receiver().next(), kept, buffer_, peer.host.buffered);
      return;
    }
    buffer_.release(kept, peer.host.buffered);
  }
}

void RdOrder::hold(RdPeer& peer, RdDelivery::Outcome outcome, Time now) {
  peer.turn.hold();
  if (outcome == RdDelivery::Outcome::no_room) return peers_.without_room.push_back(peer);
  if (outcome == RdDelivery::Outcome::no_share) {
    peers_.without_share.add(peer);
    return await_share();
  }
  if (outcome == RdDelivery::Outcome::no_memory) {
    peer.turn.wait_for_memory(now);
    return peers_.touch(peer);
  }
  counters_.add(Counter::rd_held);
  if (outcome == RdDelivery::Outcome::stag_limit) return await_stag_limit(peer, now);
  peers_.without_receive.push_back(peer);
  if (receives_.await()) waker_.wake();
}

void RdOrder::resume_held(Time now) {
  while (!peers_.without_receive.empty() && receives_.peek() != nullptr)
    if (!resume(*peers_.without_receive.front(), now)) return;
  if (!peers_.without_receive.empty() && receives_.await())
    waker_.wake();  // guard(rd-waiting-order)
  while (!peers_.without_room.empty() && records_.has_room())
    if (!resume(*peers_.without_room.front(), now)) return;
  resume_without_share(now);
}

/// When a Send of several segments has ended, or more receives are there. Those that may not hold
/// one yet are not resumed: each would be sent an acknowledgement, and there may be many.
void RdOrder::resume_without_share(Time now) {
  if (peers_.without_share.empty()) return;
  while (RdPeer* const peer = peers_.without_share.next(receives_.available()))
    if (!resume(*peer, now)) return;
  await_share();
}

/// The next receive that is posted, or given back, is news for those that wait for a share.
void RdOrder::await_share() {
  if (peers_.without_share.empty()) return;
  receives_.await();  // guard(rd-receive-posted)
  if (peers_.without_share.next(receives_.available()) != nullptr) waker_.wake();
}

/// For the limit of all peers they stand in line, and those whose addresses are trusted do not.
void RdOrder::await_stag_limit(RdPeer& peer, Time now) {
  const bool in_line = static_cast<ListNode<RdHeldTag>&>(peer).linked();
  // guard(rd-wait-guesses): !in_line => in_line
  if (!in_line && !delivery_.stag_limit().has_guessed_too_often(peer, now))
    peers_.without_stag_pass.push_back(peer);
  peer.turn.wait_for_stag_limit(delivery_.stag_limit().may_name_memory_at(peer, now), now);
  peers_.touch(peer);
}

/// One that may not name memory yet is not resumed: it would be sent an acknowledgement each
/// second. Whose timer fires first does not matter to those that stand in line.
void RdOrder::retry(RdPeer& peer, Time now) {
  if (peer.turn.waits_for_stag_limit()) {
    resume_line(now);
    if (!peer.turn.waits_for_stag_limit()) return;
    if (delivery_.stag_limit().may_name_memory_at(peer, now) > now)
      return await_stag_limit(peer, now);
  }
  resume(peer, now);
}

/// Lets those that have waited longest name memory, once each, as far as the limit of all allows.
/// The timers of others go on with it where there are many.
void RdOrder::resume_line(Time now) {
  for (int i = 0; i < kResumedAtOnce; ++i) {
    RdPeer* const first = peers_.without_stag_pass.front();
    if (first == nullptr) return;
    first->turn.set_first_in_line(true);
    const bool may_name = delivery_.stag_limit().may_name_memory_at(*first, now) <= now;
    if (may_name) resume(*first, now);
    first->turn.set_first_in_line(false);
    if (!may_name) return;
  }
}

/// False if what came of that ends all.
bool RdOrder::resume(RdPeer& peer, Time now) {
  static_cast<ListNode<RdHeldTag>&>(peer).unlink();
  peer.turn.resume();
  peer.times.lacks_next(now);
  if (peer.inbound.has_message()) peer.inbound.waited(now);
  deliver_kept(peer, now);
  peer.receiver().ask_now();  // the window has moved
  peers_.make_ready(peer);
  peers_.touch(peer);
  return !requests_.fatal();
}

}  // namespace diwarp::rnic
