// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_associations.h"

#include <string>
#include <utility>

namespace diwarp::rnic {

namespace {

using dgram::Handshake;

/// For so long after the last delivery the end of an association counts as broken.
constexpr Duration kBrokenFor = std::chrono::seconds(1);

void tell(const log::Subject& queue_pair, const RdPeer& peer, std::string_view what) {
  log::tell(LogLevel::info, queue_pair,
            [&] { return "RD peer " + peer.address().to_string() + std::string(what); });
}

}  // namespace

uint8_t RdAssociations::flags(const RdPeer* peer, Time now) {
  // guard(rd-incarnations): => const bool broken = false;
  const bool broken = peer != nullptr && peer->times.has_delivered_within(kBrokenFor, now);
  return broken ? dgram::kRdBrokenFlag : uint8_t{0};
}

void RdAssociations::open(RdPeer& peer, Time now) {
  peer.handshake().open(identity_.next_epoch(peer.address()), identity_.next_nonce(), now);
  peer.signs.want_open();
  peer.times.waits(now);
  peers_.make_ready(peer);
  peers_.touch(peer);
}

void RdAssociations::take_open(RdPeer& present, const dgram::RdHeader& header, uint32_t incarnation,
                               Time now) {
  const auto verdict = present.handshake().check_open(header, incarnation);
  if (verdict == Handshake::OpenVerdict::stale)
    return counters_.add(Counter::drop_rd_association, present.address());
  const bool other_incarnation = verdict == Handshake::OpenVerdict::replaces &&
                                 incarnation != present.handshake().peer_incarnation();
  // guard(rd-second-address): => RdPeer* const beside = nullptr;
  RdPeer* const beside = other_incarnation ? add_incarnation(present, now) : nullptr;
  RdPeer& peer = beside != nullptr ? *beside : present;
  peer.times.heard(now);
  if (verdict == Handshake::OpenVerdict::replaces && beside == nullptr)
    end_or_repeat(peer, incarnation == peer.handshake().peer_incarnation(), header.broken(), now);
  if (verdict != Handshake::OpenVerdict::again) {
    peer.handshake().establish(identity_.next_epoch(peer.address()), incarnation, header);
    establish(peer, incarnation, header.window, now);
  }
  peer.receiver().ask_now();
  peers_.make_ready(peer);
  peers_.touch(peer);
}

/// Another incarnation at an address that has an association: the peer has restarted, or it reaches
/// this queue pair by another of its addresses. A probe tells, for only a peer that has restarted
/// answers it with a reset. It is repeated until there is an answer.
/// Null where there is no room: then the new one replaces what was there.
RdPeer* RdAssociations::add_incarnation(RdPeer& present, Time now) {
  RdPeer* const beside = peers_.add_beside(present, now);
  if (beside == nullptr) return nullptr;
  present.signs.doubt();  // guard(explore): => present.signs.want_probe();
  present.times.waits(now);
  peers_.make_ready(present);
  peers_.touch(present);
  return beside;
}

void RdAssociations::accepted(RdPeer& peer, Time now) {
  establish(peer, peer.handshake().peer_incarnation(), 0, now);
  if (const auto time = peer.handshake().acceptance_time(now))
    peer.sender().round_trip().add(*time);
}

void RdAssociations::establish(RdPeer& peer, uint32_t incarnation, uint16_t window, Time now) {
  const bool other = peer.source.key.incarnation != incarnation;
  // The one that may have delivered what was begun is not there any more, or has forgotten it.
  // guard(explore): => const bool forgotten = false;
  const bool forgotten = peer.work.rewinds.uncertain() && !peer.handshake().peer_remembers();
  if (peer.work.rewinds.rewound() && (other || forgotten) && !only_reads(peer))
    fail_restarted(peer);
  tell(counters_.subject(), peer,
       other ? " is there: an association begins" : " begins another association");
  if (other) {
    delivery_.abandon(peer);  // a record may have outlived its association
    peer.replace_incarnation(incarnation, peers_.no_records());
  }
  const uint32_t own = identity_.incarnation(peer.address());
  peer.association.begin(own, window);
  peer.work.rewinds.established();
  peer.signs.open_done();
  peer.times.heard(now);
  counters_.add(Counter::rd_associations);
  peers_.make_ready(peer);
  peers_.touch(peer);
}

void RdAssociations::ended(RdPeer& peer, const dgram::RdHeader& header, uint32_t incarnation,
                           Time now) {
  const bool same = incarnation == peer.handshake().peer_incarnation();
  peer.times.heard(now);
  if (same) fail_stalled(peer, now);  // guard(rd-read-stalled)
  end_or_repeat(peer, same, header.broken(), now);
  if (!peer.work.requests.empty()) open(peer, now);
}

void RdAssociations::end_or_repeat(RdPeer& peer, bool same, bool broken, Time now) {
  if (same) {
    // guard(rd-reset-broken): without broken ||
    rewind(peer, broken || !requests_.can_repeat(peer, now));
  } else {
    tell(counters_.subject(), peer, " has restarted: requests under way to it fail");
    delivery_.abandon(peer);
    fail_restarted(peer);
  }
  end_association(peer);
}

void RdAssociations::fail_restarted(RdPeer& peer) {
  if (peer.work.requests.empty()) return;
  counters_.add(Counter::rd_restarts);
  requests_.fail_all(peer, WcStatus::peer_restarted);
}

/// An association ends because something does not get through, one way or the other. Work that has
/// not advanced for as long as a peer is waited for is not begun anew.
void RdAssociations::fail_stalled(RdPeer& peer, Time now) {
  if (peer.work.requests.empty() || peer.times.has_advanced_within(peer_timeout_, now)) return;
  counters_.add(Counter::rd_silent);
  tell(counters_.subject(), peer, " takes nothing of the requests under way, which fail");
  requests_.fail_all(peer, WcStatus::retry_exceeded);
}

void RdAssociations::give_up(RdPeer& peer, Time now) {
  counters_.add(Counter::rd_silent);
  tell(counters_.subject(), peer, " is silent and given up: requests under way to it fail");
  delivery_.abandon(peer);
  peer.handshake().forget();
  requests_.fail_all(peer, WcStatus::retry_exceeded);
  end_association(peer);
  peer.times.delivered(now);  // the peer's datagrams may have come until now
}

void RdAssociations::reopen(RdPeer& peer, Time now) {
  rewind(peer, true);
  end_association(peer);
  if (!peer.work.requests.empty()) open(peer, now);
}

/// The peer learns it from the answer to what it sends next. An honest one has kept what is dropped
/// here, for none of it was acknowledged, and begins it anew.
void RdAssociations::give_up_early(RdPeer& peer, Time now) {
  counters_.add(Counter::rd_early_dropped);
  tell(counters_.subject(), peer, " sends too late what its early datagrams wait for");
  fail_stalled(peer, now);
  reopen(peer, now);
}

/// Work that is not done is done anew in the next association, with the same incarnation of the
/// peer; but not again and again where nothing of it ever gets through, nor, where it is uncertain
/// what of it was delivered, if the peer does not remember.
void RdAssociations::rewind(RdPeer& peer, bool uncertain) {
  if (peer.work.requests.empty()) return;
  if (!peer.work.rewinds.begin_anew(uncertain && !only_reads(peer)))
    return requests_.fail_all(peer, WcStatus::retry_exceeded);
  requests_.rewind(peer);
}

/// Both sequences are over. Requests that are not done stay, and so do the peer's Write-Records.
void RdAssociations::end_association(RdPeer& peer) {
  delivery_.interrupt(peer);
  release(peer);
  peer.association.end();
  peer.signs.clear();
  peer.turn.end_refusal();
  peer.work.cursor.close_nothing();
  peer.inbound.association_ended();
  peers_.touch(peer);
}

void RdAssociations::drop(RdPeer& peer) {
  delivery_.abandon(peer);
  release(peer);
}

void RdAssociations::release(RdPeer& peer) {
  while (dgram::BufferedDatagram* kept = peer.receiver().take_any())
    buffer_.release(kept, peer.host.buffered);
  requests_.drop_reads(peer);
  responder_.drop(peer);
  peer.receiver().release_memory(buffer_, peer.host.buffered);
  // guard(rd-waited-allocation)
  if (buffer_.used() == 0) buffer_.shrink();  // no peer is left whose quiet would do it
  static_cast<ListNode<RdHeldTag>&>(peer).unlink();
  static_cast<ListNode<RdSoonTag>&>(peer).unlink();
  peer.turn.resume();
}

}  // namespace diwarp::rnic
