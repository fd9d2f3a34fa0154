// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_stream.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "llp/local/local_peers.h"

namespace diwarp::llp {
namespace {

/// Bytes of an entry at most: the consumer copies one while the producer writes the next.
constexpr size_t kEntryBytes = size_t{32} << 10;
/// Pieces that one entry gathers.
constexpr size_t kEntryPieces = 64;
/// Sends in a row that find a ring full until the consumer is asked to tell of room.
constexpr uint32_t kFullSendsUntilNotice = 4096;
/// How long a stream that requires a ring looks for one, and how long one whose peer has closed the
/// Unix socket waits for the end of its process or of the stream below.
constexpr Duration kPatience = std::chrono::seconds(5);

size_t bytes_of(std::span<const ConstBytes> pieces) {
  size_t bytes = 0;
  for (const ConstBytes piece : pieces) bytes += piece.size();
  return bytes;
}

/// Cuts a list of pieces into entries.
class EntryCutter {
 public:
  explicit EntryCutter(std::span<const ConstBytes> pieces) : left_(pieces) {}

  /// The next entry: at most kEntryBytes in at most kEntryPieces. Empty: there is nothing left.
  std::span<const ConstBytes> next() {
    size_t count = 0;
    bytes_ = 0;
    while (!left_.empty() && count < kEntryPieces && bytes_ < kEntryBytes) {
      const ConstBytes rest = left_.front().subspan(skip_);
      const ConstBytes part = rest.first(std::min(rest.size(), kEntryBytes - bytes_));
      if (!part.empty()) entry_[count++] = part;
      bytes_ += part.size();
      skip_ += part.size();
      if (part.size() != rest.size()) continue;
      left_ = left_.subspan(1);
      skip_ = 0;
    }
    return std::span(entry_).first(count);
  }
  /// Of the entry that next() returned.
  size_t bytes() const { return bytes_; }

 private:
  std::span<const ConstBytes> left_;
  size_t skip_ = 0;  // of the first piece that is left
  size_t bytes_ = 0;
  std::array<ConstBytes, kEntryPieces> entry_;
};

bool is_bytes(const RingConsumer::Taken& taken) {
  return taken.status == RingStatus::ok && taken.carries() && taken.length != 0;
}

/// What the descriptor tells now; 0: nothing.
short news_of(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&one, 1, 0) == 1 ? one.revents : short{0};
}

}  // namespace

LocalStream::LocalStream(std::unique_ptr<Stream> below, bool whole)
    : ForwardingStream(std::move(below)), may_leave_wire_(whole) {}

LocalStream::~LocalStream() {
  if (peers_ == nullptr) return;
  peers_->remove(*this);
  leave_rings();
}

void LocalStream::serve(LocalPeers& peers) {
  if (!may_leave_wire_) return;
  peers_ = &peers;
  peers_->add(*this);
}

LocalStream::Rings& LocalStream::rings() {
  if (!rings_) rings_ = std::make_unique<Rings>();
  return *rings_;
}

bool LocalStream::leaves_wire() const { return peers_ != nullptr && may_leave_wire_; }
bool LocalStream::is_required() const { return leaves_wire() && peers_->settings().required; }

/// Before calls that do not throw.
bool LocalStream::has_memory() noexcept {
  if (!rings_) rings_.reset(new (std::nothrow) Rings);
  return rings_ != nullptr;
}

InputQueue* LocalStream::input_queue() const { return peers_; }
void LocalStream::set_key(void* key) {
  set_key_of_user(key);
  if (rings_) peers_->announce(*this);
}

// --- Sending.

/// What is sent next may enter a ring, but never leaves one: what leaves it is the rest of an FPDU.
bool LocalStream::send_needs_crc() const { return !rings_ || !rings_->out || rings_->out->crc; }

IoResult LocalStream::send(std::span<const ConstBytes> pieces) {
  if (RingOut* const ring = ring_out()) return send_over(*ring, pieces);
  if (is_required()) return wait_for_ring();
  return note_sent(pieces, inner().send(pieces));
}

IoResult LocalStream::send_zero_copy(std::span<const ConstBytes> pieces) {
  if (RingOut* const ring = ring_out()) return send_over(*ring, pieces);
  if (is_required()) return wait_for_ring();
  return note_sent(pieces, inner().send_zero_copy(pieces));
}

/// The ring that what is sent now goes through; null: none. One that is offered is entered where
/// all that was sent before has been taken.
RingOut* LocalStream::ring_out() {
  if (!rings_) return nullptr;
  if (rings_->offered && at_boundary_) enter();
  return rings_->out.get();
}

/// Books what the stream below took.
IoResult LocalStream::note_sent(std::span<const ConstBytes> pieces, const IoResult& result) {
  sent_ += result.bytes;
  if (!leaves_wire() || result.status != IoStatus::ok) return result;
  at_boundary_ = result.bytes == bytes_of(pieces);
  const uint32_t after = peers_->settings().after;
  if (at_boundary_ && after != 0 && ++streak_ >= after) seek();
  return result;
}

void LocalStream::seek() {
  streak_ = 0;
  if (!has_memory() || rings_->seeking || rings_->offered || !rings_->backoff.take_turn()) return;
  rings_->seeking = true;
  peers_->seek(*this, {.kind = RingKind::stream, .from = local_address(), .to = peer_address()}, 0);
}

/// For tests that want all to go through rings: nothing is sent before there is one.
IoResult LocalStream::wait_for_ring() {
  if (!has_memory()) return {IoStatus::would_block};
  const Time now = peers_->now();
  if (!rings_->give_up) rings_->give_up = now + kPatience;
  if (now >= *rings_->give_up) return {IoStatus::failed, 0, ECONNREFUSED};
  rings_->notice = RoomNotice::none;
  rings_->backoff.succeeded();
  seek();
  return {IoStatus::would_block};
}

/// What follows goes through the ring that is offered.
void LocalStream::enter() {
  std::array<std::byte, sizeof sent_> position;
  std::memcpy(position.data(), &sent_, sizeof sent_);
  const ConstBytes piece(position);
  rings_->out = std::exchange(rings_->offered, nullptr);
  rings_->notice = RoomNotice::none;
  rings_->full_in_row = 0;
  // Where the ring is of no use, the first bytes find it so.
  rings_->out->producer.put({&piece, 1}, piece.size(), EntryHeader::Kind::begin);
}

IoResult LocalStream::send_over(RingOut& ring, std::span<const ConstBytes> pieces) {
  size_t taken = 0;
  const RingStatus status = put_all(ring, pieces, taken);
  if (ring.producer.must_wake()) ring.connection->nudge(LocalPacket::Kind::wake);
  peers_->count_sent(0, taken, 0);
  if (taken != 0) rings_->full_in_row = 0;
  at_boundary_ = status == RingStatus::ok;
  if (status == RingStatus::broken) return {IoStatus::failed, 0, ECONNRESET};
  // Nothing that is sent reaches a peer that has closed its ring: the stream below tells how the
  // connection ends.
  if (status == RingStatus::closed || ring.connection->is_over()) leave();
  if (taken != 0) return {IoStatus::ok, taken};
  if (status == RingStatus::full && rings_->out) note_full(ring);
  return {IoStatus::would_block};
}

RingStatus LocalStream::put_all(RingOut& ring, std::span<const ConstBytes> pieces, size_t& taken) {
  EntryCutter cutter(pieces);
  const auto kind = ring.crc ? EntryHeader::Kind::datagram : EntryHeader::Kind::unsealed;
  for (;;) {
    const auto entry = cutter.next();
    if (entry.empty()) return RingStatus::ok;
    const RingStatus status = ring.producer.put(entry, cutter.bytes(), kind);
    if (status != RingStatus::ok) return status;
    taken += cutter.bytes();
  }
}

/// The engine asks again until it has done so often in vain; then the consumer has to tell.
void LocalStream::note_full(RingOut& ring) {
  rings_->notice = RoomNotice::none;
  if (++rings_->full_in_row < kFullSendsUntilNotice) return;
  rings_->full_in_row = 0;
  if (ring.producer.await_room(kEntryBytes)) rings_->notice = RoomNotice::announcement;
}

/// After a send that took nothing, or less than all, of a ring.
RoomNotice LocalStream::room_notice() const {
  if (rings_ && rings_->out) return rings_->notice;
  return is_required() ? RoomNotice::none : inner().room_notice();
}

/// From now on bytes go over the stream below. There is always room to say so.
void LocalStream::leave() {
  const auto ring = std::exchange(rings_->out, nullptr);
  if (!ring) return;
  ring->producer.put({}, 0, EntryHeader::Kind::end);
  if (ring->producer.must_wake()) ring->connection->nudge(LocalPacket::Kind::wake);
}

void LocalStream::room_made(const LocalConnection& connection) {
  if (!rings_ || !rings_->out || rings_->out->connection.get() != &connection) return;
  if (std::exchange(rings_->notice, RoomNotice::none) == RoomNotice::announcement)
    peers_->announce(*this);
}

// --- Receiving.

IoResult LocalStream::receive(Bytes buffer) { return receive_into({&buffer, 1}); }

IoResult LocalStream::receive_into(std::span<const Bytes> buffers) {
  const bool ring = rings_ && !rings_->in.empty();
  if (!ring) return receive_on_wire(buffers);
  if (std::exchange(rings_->asleep, false)) rings_->in.front()->consumer.awake();
  return rings_->entered ? receive_over(buffers) : receive_before_ring(buffers);
}

IoResult LocalStream::receive_on_wire(std::span<const Bytes> buffers) {
  received_needs_crc_ = true;
  if (rings_ && !rings_->behind.empty()) return receive_behind(buffers.front());
  const IoResult result =
      buffers.size() == 1 ? inner().receive(buffers.front()) : inner().receive_into(buffers);
  received_ += result.bytes;
  return result;
}

/// What was read too early.
IoResult LocalStream::receive_behind(Bytes room) {
  std::vector<std::byte>& behind = rings_->behind;
  const size_t bytes = std::min(room.size(), behind.size());
  std::copy_n(behind.begin(), bytes, room.begin());
  behind.erase(behind.begin(), behind.begin() + static_cast<ptrdiff_t>(bytes));
  if (behind.empty()) behind.shrink_to_fit();
  received_ += bytes;
  return bytes == 0 ? IoResult{IoStatus::would_block} : IoResult{IoStatus::ok, bytes};
}

/// Bytes of the wire come first, up to the position at which the first ring begins. Where that was
/// not known yet, what was read beyond it follows the ring: the peer may have left it already.
IoResult LocalStream::receive_before_ring(std::span<const Bytes> buffers) {
  const bool known = knows_begin();
  if (rings_->in.empty()) return receive_on_wire(buffers);
  if (rings_->entered) return receive_over(buffers);
  if (known) {
    const uint64_t left = *rings_->begins - received_;
    const Bytes first = buffers.front().first(std::min<uint64_t>(left, buffers.front().size()));
    const IoResult result = receive_on_wire({&first, 1});
    rings_->entered = received_ == *rings_->begins;
    return result;
  }
  const uint64_t before = received_;
  IoResult result = receive_on_wire(buffers);
  // What the peer wrote into the ring before it ended the stream comes before the end.
  if (result.status == IoStatus::closed && knows_begin()) return receive_into(buffers);
  if (result.bytes == 0) return result;
  received_ = before;
  const bool now_known = knows_begin();
  received_ += result.bytes;
  if (!now_known || received_ < *rings_->begins) return result;
  const size_t excess = static_cast<size_t>(received_ - *rings_->begins);
  result.bytes = take_back(buffers, result.bytes, excess);
  rings_->entered = true;
  return result.bytes != 0 ? result : receive_over(buffers);
}

/// The last `excess` of the bytes in the buffers are for later. Returns how many are left.
size_t LocalStream::take_back(std::span<const Bytes> buffers, size_t bytes, size_t excess) {
  std::vector<std::byte> all;
  for (const Bytes buffer : buffers) {
    const size_t here = std::min(buffer.size(), bytes - all.size());
    all.insert(all.end(), buffer.begin(), buffer.begin() + static_cast<ptrdiff_t>(here));
  }
  const auto cut = all.end() - static_cast<ptrdiff_t>(excess);
  rings_->behind.insert(rings_->behind.begin(), cut, all.end());
  received_ -= excess;
  return bytes - excess;
}

/// Whether the position is known at which the first ring begins: its first entry tells.
bool LocalStream::knows_begin() {
  if (rings_->begins) return true;
  RingIn& ring = *rings_->in.front();
  uint64_t position = 0;
  std::array<std::byte, sizeof position> room;
  const RingConsumer::Taken first = ring.consumer.take(room);
  if (first.status == RingStatus::empty) {
    if (ring.ended) drop_first();
    return false;
  }
  std::memcpy(&position, room.data(), sizeof position);
  const bool credible = first.status == RingStatus::ok && first.kind == EntryHeader::Kind::begin &&
                        first.length == sizeof position && position >= received_;
  ring.broken = !credible;
  rings_->begins = credible ? position : received_;
  rings_->entered = received_ == *rings_->begins;
  return true;
}

IoResult LocalStream::receive_over(std::span<const Bytes> buffers) {
  RingIn& ring = *rings_->in.front();
  if (ring.broken) return {IoStatus::failed, 0, ECONNRESET};
  // Before the ring is read: bytes there precede whatever the descriptor told.
  const bool looks = ring.ended || rings_->wire.is_due();
  const short news = looks ? news_of(descriptor()) : short{0};
  if (looks) rings_->wire.looked(news != 0);
  if ((news & POLLERR) != 0) return inner().receive_into(buffers);
  const IoResult came = take(buffers);
  if (came.status != IoStatus::would_block) return came;
  if (!rings_->entered) return receive_into(buffers);  // the peer has left the ring
  if (news != 0) return look_at_wire(buffers);
  return ring.ended ? look_for_end() : came;
}

/// What is in the first ring, as far as it finds room.
IoResult LocalStream::take(std::span<const Bytes> buffers) {
  const std::shared_ptr<RingIn> ring = rings_->in.front();
  size_t bytes = 0;
  RingConsumer::Taken last{.status = RingStatus::ok, .length = 1};
  for (Bytes room : buffers) {
    while (is_bytes(last) && !room.empty()) {
      last = ring->consumer.take_some(room);
      if (!is_bytes(last)) break;
      received_needs_crc_ = last.kind != EntryHeader::Kind::unsealed;
      bytes += last.length;
      room = room.subspan(last.length);
    }
  }
  if (bytes != 0) ring->consumer.give_back();
  if (ring->consumer.must_tell_room()) ring->connection->nudge(LocalPacket::Kind::room);
  const bool left = last.status == RingStatus::ok && last.kind == EntryHeader::Kind::end;
  if (left) drop_first();
  ring->broken = !left && !is_bytes(last) && last.status != RingStatus::empty;
  if (bytes != 0) return {IoStatus::ok, bytes};
  if (ring->broken) return {IoStatus::failed, 0, ECONNRESET};
  return {IoStatus::would_block};
}

/// The ring was empty after the descriptor had told of something: the end, for a peer whose bytes
/// go through a ring sends none below.
IoResult LocalStream::look_at_wire(std::span<const Bytes> buffers) {
  const IoResult came = inner().receive_into(buffers);
  if (came.status == IoStatus::ok) return {IoStatus::failed, 0, ECONNRESET};
  return came;
}

/// The peer's device is gone, and the ring is empty. Where its process is as well, a child of it
/// may hold the TCP socket.
IoResult LocalStream::look_for_end() {
  const RingIn& ring = *rings_->in.front();
  const Time now = peers_->now();
  if (!rings_->over_until) rings_->over_until = now + kPatience;
  const bool waits = now < *rings_->over_until && !ring.connection->process_has_ended();
  if (waits) return {IoStatus::would_block};
  return {IoStatus::failed, 0, ECONNRESET};
}

/// The first ring is not read any more.
void LocalStream::drop_first() {
  rings_->in.front()->consumer.close();
  rings_->in.erase(rings_->in.begin());
  rings_->entered = false;
  rings_->begins.reset();
  rings_->over_until.reset();
}

bool LocalStream::set_watched(bool watched) {
  const bool quiet = inner().set_watched(watched);
  if (!watched || !rings_ || fall_asleep()) return quiet;
  woken();
  return false;
}

/// False where there is something that the stream below does not tell of.
bool LocalStream::fall_asleep() {
  if (rings_->in.empty()) return rings_->behind.empty();
  RingIn& ring = *rings_->in.front();
  // One that has ended is asked until its end is known.
  rings_->asleep = !ring.ended && ring.consumer.sleep();
  return rings_->asleep;
}

// --- Rings come and go.

uint32_t LocalStream::hash() const {
  return route_hash(RingKind::stream, local_address().port(), peer_address().port());
}

bool LocalStream::serves(const LocalRoute& route) const {
  return key() != nullptr && route.kind == RingKind::stream && route.to == local_address() &&
         route.from == peer_address();
}

void LocalStream::add(std::shared_ptr<RingIn> ring) {
  rings().in.push_back(std::move(ring));
  woken();
}

void LocalStream::add(std::shared_ptr<RingOut> ring) {
  rings().seeking = false;
  rings_->backoff.succeeded();
  rings_->give_up.reset();
  rings_->offered = std::move(ring);
}

void LocalStream::nobody_there(const Destination& /*to*/) {
  rings().seeking = false;
  rings_->backoff.failed();
}

void LocalStream::woken() { peers_->announce(*this); }

void LocalStream::end(const LocalConnection& connection, std::optional<uint32_t> number) {
  if (!rings_) return;
  for (const auto& ring : rings_->in)
    if (ring->connection.get() == &connection && ring->number == number.value_or(ring->number))
      ring->ended = true;
  woken();
}

void LocalStream::end_idle() {
  if (!rings_) return;
  if (rings_->offered && !rings_->out) {  // nothing was sent since it came
    enter();
    return leave();
  }
  if (rings_->out && is_idle(*rings_->out)) leave();
}

/// Whether nothing was put into the ring since the last call, though it had room.
bool LocalStream::is_idle(RingOut& ring) const {
  if (ring.connection->is_over()) return true;
  const bool awaits_room = rings_->full_in_row != 0 || rings_->notice == RoomNotice::announcement;
  return !ring.producer.used() && !awaits_room;
}

void LocalStream::leave_rings() {
  if (!rings_) return;
  leave();
  for (const auto& ring : rings_->in) ring->consumer.close();
  rings_.reset();
}

bool LocalStream::leave_engine() {
  if (peers_ != nullptr) {
    peers_->remove(*this);
    leave_rings();
    set_key_of_user(nullptr);
    peers_ = nullptr;
  }
  return inner().leave_engine();
}

void LocalStream::abort() {
  rings_.reset();
  inner().abort();
}

}  // namespace diwarp::llp
