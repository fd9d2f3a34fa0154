// SPDX-License-Identifier: Apache-2.0
#include "llp/local/ring.h"

#include <algorithm>
#include <cstring>

#include "llp/local/full_fence.h"
#include "llp/network_order.h"

namespace diwarp::llp {

namespace {

constexpr size_t kLinesBehind = 2 * kCacheLine;

/// Each side stores, and then looks at what the other one stores: without a full fence between them
/// both could miss the other's (store buffers).
bool take_back(std::atomic<uint32_t>& flag) {
  full_fence();
  return flag.load(std::memory_order_relaxed) != 0 &&
         flag.exchange(0, std::memory_order_relaxed) != 0;
}

}  // namespace

// --- The producer.

/// The bytes at the end of the memory that an entry does not fit in, or is not to use.
size_t RingProducer::skipped_before(size_t bytes) const {
  const size_t left = ring_.capacity() - ring_.offset(written_);
  return bytes <= left && !begins_anew(bytes) ? 0 : left;
}

/// A ring that is read as fast as it is filled stays within its first part, and so in the cache.
/// The consumer is asked once in so many bytes.
bool RingProducer::begins_anew(size_t bytes) const {
  const size_t at = ring_.offset(written_);
  const bool asks = at / kLeastRing != (at + bytes) / kLeastRing;
  return asks && ring_.control().consumed.load(std::memory_order_acquire) == written_;
}

/// So that `bytes` from written_ on are free.
RingStatus RingProducer::make_room(size_t bytes) {
  if (ring_.capacity() - (written_ - consumed_) >= bytes) return RingStatus::ok;
  const uint64_t now = ring_.control().consumed.load(std::memory_order_acquire);
  const bool credible = now - consumed_ <= written_ - consumed_ && now % kCacheLine == 0;
  if (!credible) return RingStatus::broken;  // guard(ring-consumed): => return RingStatus::ok;
  consumed_ = now;
  return ring_.capacity() - (written_ - now) >= bytes ? RingStatus::ok : RingStatus::full;
}

/// The header behind an entry is cleared before the entry can be seen, so the consumer never takes
/// old bytes for one: that line has to be free as well, and behind it one for an entry of kind
/// `end`.
RingStatus RingProducer::put(std::span<const ConstBytes> pieces, size_t size,
                             EntryHeader::Kind kind) {
  if (ring_.control().closed.load(std::memory_order_relaxed) != 0) return RingStatus::closed;
  const size_t bytes = entry_bytes(size);
  const size_t skipped = skipped_before(bytes);
  const size_t behind = kind == EntryHeader::Kind::end ? kCacheLine : kLinesBehind;
  if (const RingStatus room = make_room(skipped + bytes + behind); room != RingStatus::ok)
    return room;

  const uint64_t at = written_ + skipped;
  ring_.header(at + bytes).store(0, std::memory_order_relaxed);
  std::byte* to = ring_.payload(at);
  for (const ConstBytes piece : pieces) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
  order_by_network();
  ring_.header(at).store(EntryHeader::of(kind, size).word(), std::memory_order_release);
  if (skipped != 0)
    ring_.header(written_).store(EntryHeader::of(EntryHeader::Kind::skip, 0).word(),
                                 std::memory_order_release);
  written_ = at + bytes;
  used_ = true;
  return RingStatus::ok;
}

bool RingProducer::await_room(size_t size) {
  std::atomic<uint32_t>& awaits = ring_.control().awaits_room;
  awaits.store(1, std::memory_order_relaxed);
  full_fence();
  const size_t bytes = entry_bytes(size);
  if (make_room(skipped_before(bytes) + bytes + kLinesBehind) == RingStatus::full) return true;
  awaits.store(0, std::memory_order_relaxed);
  return false;
}

bool RingProducer::must_wake() { return take_back(ring_.control().asleep); }

// --- The consumer.

/// What the next entry is, as its header says, which is read once.
RingConsumer::Taken RingConsumer::next() {
  EntryHeader entry(ring_.header(taken_).load(std::memory_order_acquire));
  if (entry.kind() == EntryHeader::Kind::skip) {
    taken_ += ring_.capacity() - ring_.offset(taken_);
    entry = EntryHeader(ring_.header(taken_).load(std::memory_order_acquire));
  }
  if (entry.word() == 0) return {};
  const size_t length = entry.length();
  const bool known = entry.carries() || entry.kind() == EntryHeader::Kind::begin ||
                     entry.kind() == EntryHeader::Kind::end;
  const bool credible = known && length <= kMaxDatagram &&
                        entry_bytes(length) <= ring_.capacity() - ring_.offset(taken_);
  order_by_network();
  if (!credible) return {RingStatus::broken};  // guard(ring-entry): condition => false
  return {RingStatus::ok, length, entry.kind()};
}

/// Takes the next entry, of which next() has told.
RingConsumer::Taken RingConsumer::take_whole(const Taken& entry, Bytes room) {
  if (entry.status != RingStatus::ok) return entry;
  if (entry.length > room.size()) return {RingStatus::full};
  std::memcpy(room.data(), ring_.payload(taken_), entry.length);
  taken_ += entry_bytes(entry.length);
  return entry;
}

RingConsumer::Taken RingConsumer::take(Bytes room) { return take_whole(next(), room); }

RingConsumer::Taken RingConsumer::take_some(Bytes room) {
  if (part_ == 0) {
    const Taken entry = next();
    const bool whole = !entry.carries() || entry.length <= room.size();
    if (entry.status != RingStatus::ok || whole) return take_whole(entry, room);
    cut_ = entry;
  }
  const size_t length = std::min(room.size(), cut_.length - part_);
  std::memcpy(room.data(), ring_.payload(taken_) + part_, length);
  part_ += length;
  if (part_ == cut_.length) {
    taken_ += entry_bytes(cut_.length);
    part_ = 0;
  }
  return {RingStatus::ok, length, cut_.kind};
}

bool RingConsumer::must_tell_room() { return take_back(ring_.control().awaits_room); }

bool RingConsumer::something_waits() const {
  return part_ != 0 || ring_.header(taken_).load(std::memory_order_acquire) != 0;
}

bool RingConsumer::sleep() {
  ring_.control().asleep.store(1, std::memory_order_relaxed);
  full_fence();
  if (!something_waits()) return true;
  awake();
  return false;
}

}  // namespace diwarp::llp
