// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_link.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "llp/local/local_peers.h"

namespace diwarp::llp {

LocalLink::LocalLink(std::unique_ptr<DatagramLink> below, LocalPeers& peers)
    : ForwardingDatagramLink(std::move(below)), peers_(peers), streak_(peers.settings().after) {
  peers_.add(*this);
}

LocalLink::~LocalLink() {
  peers_.remove(*this);
  if (!rings_) return;
  for (const auto& ring : rings_->in) ring->consumer.close();
  for (const auto& ring : rings_->out) leave(*ring);
}

LocalLink::Rings& LocalLink::rings() {
  if (!rings_) rings_ = std::make_unique<Rings>();
  return *rings_;
}

/// Before calls that do not throw.
bool LocalLink::has_memory() noexcept {
  if (!rings_) rings_.reset(new (std::nothrow) Rings);
  return rings_ != nullptr;
}

InputQueue* LocalLink::input_queue() const { return &peers_; }

void LocalLink::set_key(void* key) {
  set_key_of_user(key);
  if (rings_) peers_.announce(*this);
}

uint32_t LocalLink::hash() const {
  return route_hash(RingKind::datagrams, local_address().port(), 0);
}

bool LocalLink::serves(const LocalRoute& route) const {
  if (key() == nullptr || route.kind != RingKind::datagrams) return false;
  const Address& to = route.to;
  const Address own = local_address();
  if (own.port() != to.port()) return false;
  return own.is_any() ? own.family() == to.family() || own.family() == AddressFamily::ipv6
                      : own == to;
}

// --- Sending.

SendResult LocalLink::send(std::span<const OutgoingDatagram> burst) {
  SendResult result;
  while (result.sent < burst.size()) {
    const auto rest = burst.subspan(result.sent);
    RingOut* const ring = ring_to(rest.front().destination());
    const auto run = rest.first(run_length(rest, ring));
    const SendResult part = ring != nullptr ? send_over(*ring, run) : send_below(run);
    result.sent += part.sent;
    // A ring that is of no use any more is gone, and what it did not take goes below.
    const bool goes_on = part.sent != 0 || ring != nullptr;
    if (part.status == SendStatus::ok && goes_on) continue;
    result.status = part.status;
    result.error = part.error;
    break;
  }
  return result;
}

SendResult LocalLink::send_below(std::span<const OutgoingDatagram> run) {
  if (peers_.settings().required) return wait_for_ring(run.front().destination());
  const SendResult result = inner().send(run);
  if (streak_.counts() && streak_.add(run)) seek(streak_.destination());
  return result;
}

/// For tests that want all to go through rings: the datagram waits for one, or never leaves.
SendResult LocalLink::wait_for_ring(const Destination& to) {
  if (!is_a_host(to.address)) return {.status = SendStatus::refused, .error = EDESTADDRREQ};
  if (!has_memory()) return {.status = SendStatus::would_block};
  if (rings_->nobody == to) {
    rings_->nobody = {};
    return {.status = SendStatus::refused, .error = ECONNREFUSED};
  }
  if (rings_->sought.address.port() == 0) seek(to);
  return {.status = SendStatus::would_block};
}

void LocalLink::seek(const Destination& to) {
  if (!is_a_host(to.address) || !has_memory() || rings_->sought.address.port() != 0) return;
  if (!(rings_->nobody == to)) rings_->backoff.succeeded();
  if (!rings_->backoff.take_turn()) return;
  rings_->sought = to;
  peers_.seek(*this,
              {.kind = RingKind::datagrams,
               .from = address_of(to.local).with_port(local_address().port()),
               .to = to.address},
              to.local);
}

/// The datagrams from the first on that go the same way as that: over `ring`, or below.
size_t LocalLink::run_length(std::span<const OutgoingDatagram> burst, const RingOut* ring) {
  if (!rings_ || rings_->out.empty()) return burst.size();
  size_t length = 1;
  while (length < burst.size() && ring_to(burst[length].destination()) == ring) ++length;
  return length;
}

RingOut* LocalLink::ring_to(const Destination& to) {
  if (!rings_) return nullptr;
  auto& out = rings_->out;
  if (rings_->latest < out.size() && out[rings_->latest]->to == to)
    return out[rings_->latest].get();
  const auto found =
      std::find_if(out.begin(), out.end(), [&](const auto& ring) { return ring->to == to; });
  if (found == out.end()) return nullptr;
  rings_->latest = static_cast<size_t>(found - out.begin());
  return found->get();
}

/// What finds no room is lost, as in a socket's buffer, unless the receiver makes some by now.
/// Where the ring is of no use any more, the rest of the run is for the link below.
SendResult LocalLink::send_over(RingOut& ring, std::span<const OutgoingDatagram> run) {
  SendResult result;
  uint64_t bytes = 0;
  uint64_t lost = 0;
  for (const OutgoingDatagram& datagram : run) {
    if (ring.connection->is_over()) break;
    const size_t size = datagram.size();
    const RingStatus status = ring.producer.put(datagram.pieces, size);
    if (status == RingStatus::closed || status == RingStatus::broken) break;
    if (status == RingStatus::full && ring.patience.lasts(ring.producer)) {
      result.status = SendStatus::would_block;
      break;
    }
    if (status == RingStatus::full)
      ++lost;
    else
      bytes += size;
    ++result.sent;
  }
  if (ring.producer.must_wake()) ring.connection->nudge(LocalPacket::Kind::wake);
  peers_.count_sent(result.sent - lost, bytes, lost);
  if (result.sent != run.size() && result.status == SendStatus::ok) drop(ring);
  return result;
}

void LocalLink::leave(RingOut& ring) {
  ring.connection->send({.kind = LocalPacket::Kind::end, .number = ring.number});
}

void LocalLink::drop(RingOut& ring) {
  leave(ring);
  std::erase_if(rings_->out, [&](const auto& one) { return one.get() == &ring; });
  if (rings_->out.empty()) rings_->out.shrink_to_fit();
}

// --- Receiving.

size_t LocalLink::receive(ReceiveBatch& batch) {
  const bool rings_wait = rings_ && (rings_->awake != 0 || rings_->look_at_all);
  if (!rings_wait) return inner().receive(batch);
  if (rings_->below.is_due()) {
    const size_t got = inner().receive(batch);
    rings_->below.looked(got != 0);
    if (got != 0) return got;
  }
  batch.clear();
  return take_from_rings(batch);
}

size_t LocalLink::take_from_rings(ReceiveBatch& batch) {
  Room room;
  look_at_awake(batch, room);
  if (std::exchange(rings_->look_at_all, false)) {
    look_at_sleeping(batch, room);
    drop_ended();
  }
  return batch.datagrams().size();
}

/// Each look begins behind the ring with which the batch was full: none can keep it from others.
void LocalLink::look_at_awake(ReceiveBatch& batch, Room& room) {
  const size_t count = rings_->awake;
  const size_t first = rings_->first < count ? rings_->first : 0;
  bool fall_asleep_later = false;
  for (size_t n = 0; n < count && batch.room() != 0 && room.slot < batch.slots(); ++n) {
    const size_t i = (first + n) % count;
    RingIn& ring = *rings_->in[i];
    rings_->first = i + 1;
    if (is_preceded(ring)) continue;
    if (take_from(ring, batch, room))
      ring.empty_looks = 0;
    else if (ring.ended)
      rings_->look_at_all = true;  // it goes
    else
      fall_asleep_later |= ++ring.empty_looks >= kEmptyLooksUntilSleep;
  }
  if (fall_asleep_later) let_silent_sleep();
}

/// What came to the link below before the first datagram of a ring is received before it.
bool LocalLink::is_preceded(RingIn& ring) {
  if (!ring.fresh || !ring.consumer.something_waits()) return false;
  ring.fresh = false;
  rings_->below.begin();
  return true;
}

void LocalLink::let_silent_sleep() {
  for (size_t i = rings_->awake; i-- > 0;) {
    if (rings_->in[i]->empty_looks < kEmptyLooksUntilSleep) continue;
    rings_->in[i]->empty_looks = 0;
    fall_asleep(i);
  }
}

void LocalLink::look_at_sleeping(ReceiveBatch& batch, Room& room) {
  for (size_t i = rings_->awake; i < rings_->in.size(); ++i) {
    RingIn& ring = *rings_->in[i];
    // One that is empty has to wake this side again: the producer may have set that back.
    const bool stays_awake =
        is_preceded(ring) || take_from(ring, batch, room) || !ring.consumer.sleep();
    if (!stays_awake) continue;
    ring.consumer.awake();
    std::swap(rings_->in[i], rings_->in[rings_->awake++]);
  }
}

/// From now on the ring has to wake this side. False where it has something.
bool LocalLink::fall_asleep(size_t awake_ring) {
  if (!rings_->in[awake_ring]->consumer.sleep()) return false;
  std::swap(rings_->in[awake_ring], rings_->in[--rings_->awake]);
  return true;
}

/// Whether something came.
bool LocalLink::take_from(RingIn& ring, ReceiveBatch& batch, Room& room) {
  size_t taken = 0;
  while (taken < kDatagramsPerLook && batch.room() != 0 && room.slot < batch.slots()) {
    const Bytes free = batch.slot(room.slot).subspan(room.used);
    const RingConsumer::Taken next = ring.consumer.take(free);
    if (next.status == RingStatus::full && room.used != 0) {
      room = {.slot = room.slot + 1};
      continue;
    }
    if (next.status == RingStatus::empty) break;
    if (next.status != RingStatus::ok) {
      end_broken(ring);
      break;
    }
    batch.add(ring.route.from, free.first(next.length), false, ring.local);
    const size_t lines = (next.length + kCacheLine - 1) / kCacheLine;
    room.used = std::min(room.used + lines * kCacheLine, batch.slot_bytes());
    ++taken;
  }
  if (taken != 0) ring.consumer.give_back();
  return taken != 0;
}

void LocalLink::end_broken(RingIn& ring) {
  ring.broken = true;
  ring.ended = true;
  rings_->look_at_all = true;
}

/// Rings that have ended, and were read empty.
void LocalLink::drop_ended() {
  auto& in = rings_->in;
  for (const auto& ring : in)
    ring->done = ring->ended && (ring->broken || !ring->consumer.something_waits());
  const auto is_done = [](const auto& ring) { return ring->done; };
  const auto awake_end = in.begin() + static_cast<ptrdiff_t>(rings_->awake);
  rings_->awake -= static_cast<size_t>(std::count_if(in.begin(), awake_end, is_done));
  for (const auto& ring : in)
    if (ring->done) ring->consumer.close();
  std::erase_if(in, is_done);
}

bool LocalLink::set_watched(bool watched) {
  bool quiet = inner().set_watched(watched);
  if (!watched || !rings_) return quiet;
  for (size_t i = rings_->awake; i-- > 0;)
    if (!fall_asleep(i)) quiet = false;
  if (rings_->look_at_all) quiet = false;
  if (!quiet) peers_.announce(*this);
  return quiet;
}

// --- Rings come and go.

void LocalLink::add(std::shared_ptr<RingIn> ring) {
  ring->local = number_of(ring->route.to);
  auto& in = rings().in;
  in.push_back(std::move(ring));
  std::swap(in.back(), in[rings_->awake++]);
  woken();
}

void LocalLink::add(std::shared_ptr<RingOut> ring) {
  rings().sought = {};
  rings_->backoff.succeeded();
  rings_->out.push_back(std::move(ring));
}

void LocalLink::nobody_there(const Destination& to) {
  rings().sought = {};
  rings_->nobody = to;
  rings_->backoff.failed();
}

void LocalLink::woken() {
  if (!rings_) return;
  rings_->look_at_all = true;
  peers_.announce(*this);
}

void LocalLink::end(const LocalConnection& connection, std::optional<uint32_t> number) {
  if (!rings_) return;
  for (const auto& ring : rings_->in)
    if (ring->connection.get() == &connection && ring->number == number.value_or(ring->number))
      ring->ended = true;
  woken();
}

void LocalLink::end_idle() {
  if (!rings_) return;
  std::erase_if(rings_->out, [this](const auto& ring) {
    const bool idle = ring->connection->is_over() || !ring->producer.used();
    if (idle) leave(*ring);
    return idle;
  });
}

}  // namespace diwarp::llp
