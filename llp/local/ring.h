// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/cache_line.h"
#include "llp/datagram_link.h"

/// A ring of datagrams, or of the bytes of a stream, in memory that two processes share: one
/// produces, the other one consumes. docs/local.md has a picture of it.
///
/// Each trusts nothing that the other one can write. Positions are kept in own memory; what is read
/// of the other's is copied once, checked, and only the copy is used.
namespace diwarp::llp {

/// Sizes of the part of a ring that holds entries, in bytes; powers of two.
inline constexpr size_t kLeastRing = size_t{256} << 10;
inline constexpr size_t kMostRing = size_t{8} << 20;

/// What lies before the entries. Fields that one side writes stand on cache lines of their own.
struct RingControl {
  /// Of the consumer: how many bytes of entries it has taken since the ring was made.
  alignas(kCacheLine) std::atomic<uint64_t> consumed;
  /// The consumer sleeps, or is about to: a producer that sets it back has to wake it. Apart from
  /// what the consumer writes in each burst, for the producer reads these in each of its own.
  alignas(kCacheLine) std::atomic<uint32_t> asleep;
  /// The consumer takes no more.
  std::atomic<uint32_t> closed;
  /// Of the producer: it waits for room; a consumer that sets it back has to tell it of some.
  alignas(kCacheLine) std::atomic<uint32_t> awaits_room;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr size_t ring_memory(size_t entries) { return sizeof(RingControl) + entries; }

/// The word that begins an entry. Zero: there is none yet.
class EntryHeader {
 public:
  enum class Kind : uint8_t {
    none,
    datagram,  ///< or, in a stream's ring, bytes of the stream
    unsealed,  ///< the same, but the CRCs in it were not computed, and are not to be checked
    skip,      ///< the next entry is at the beginning of the ring
    begin,     ///< of a stream: the position at which it enters the ring (8 bytes)
    end,       ///< of a stream: it leaves the ring, in which nothing follows
  };

  constexpr EntryHeader() = default;
  constexpr explicit EntryHeader(uint64_t word) : word_(word) {}
  static constexpr EntryHeader of(Kind kind, size_t length) {
    return EntryHeader(static_cast<uint64_t>(kind) | static_cast<uint64_t>(length) << 16);
  }

  constexpr uint64_t word() const { return word_; }
  constexpr Kind kind() const { return static_cast<Kind>(word_ & 0xFF); }
  /// A datagram, or bytes of a stream; else what is said of the ring.
  constexpr bool carries() const { return kind() == Kind::datagram || kind() == Kind::unsealed; }
  /// Bytes behind the header; at most kMaxDatagram, unless the other side lies.
  constexpr size_t length() const { return static_cast<size_t>(word_ >> 16); }

 private:
  uint64_t word_ = 0;
};

/// The bytes of the ring that a datagram takes: whole cache lines.
constexpr size_t entry_bytes(size_t length) {
  return (sizeof(EntryHeader) + length + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// One side's view of the memory, which outlives it.
class RingView {
 public:
  /// `memory`: ring_memory() bytes, aligned to a page.
  explicit RingView(Bytes memory)
      : control_(*reinterpret_cast<RingControl*>(memory.data())),
        entries_(memory.data() + sizeof(RingControl)),
        capacity_(memory.size() - sizeof(RingControl)) {}

  RingControl& control() const { return control_; }
  size_t capacity() const { return capacity_; }
  size_t offset(uint64_t position) const { return static_cast<size_t>(position) & (capacity_ - 1); }
  std::atomic<uint64_t>& header(uint64_t position) const {
    return *reinterpret_cast<std::atomic<uint64_t>*>(entries_ + offset(position));
  }
  std::byte* payload(uint64_t position) const {
    return entries_ + offset(position) + sizeof(EntryHeader);
  }

 private:
  RingControl& control_;
  std::byte* const entries_;
  const size_t capacity_;
};

enum class RingStatus : uint8_t {
  ok,
  empty,   ///< of the consumer: nothing waits
  full,    ///< there is no room now
  closed,  ///< of the producer: the consumer takes no more
  broken,  ///< the other side wrote what it never should: nothing more goes over this ring
};

class RingProducer {
 public:
  /// Of memory that is zero, and that no consumer has seen.
  explicit RingProducer(Bytes memory) : ring_(memory) {}

  /// Puts an entry of `size` bytes, at most kMaxDatagram, into the ring, where the consumer finds
  /// it from now on. There is always room for one of kind `end` behind the others.
  RingStatus put(std::span<const ConstBytes> pieces, size_t size,
                 EntryHeader::Kind kind = EntryHeader::Kind::datagram);
  RingStatus put(const OutgoingDatagram& datagram) { return put(datagram.pieces, datagram.size()); }

  /// After put() found no room for `size` bytes: asks the consumer to tell of some. False: there is
  /// room by now, and nothing is told.
  bool await_room(size_t size);

  /// After the last put() of a burst: whether the consumer has to be woken. True once for each time
  /// that it falls asleep.
  bool must_wake();

  /// Bytes of entries that the consumer has taken, as put() has seen it.
  uint64_t consumed() const { return consumed_; }
  size_t capacity() const { return ring_.capacity(); }

  /// Whether something was put since the last call.
  bool used() { return std::exchange(used_, false); }

 private:
  size_t skipped_before(size_t bytes) const;
  bool begins_anew(size_t bytes) const;
  RingStatus make_room(size_t bytes);

  const RingView ring_;
  uint64_t written_ = 0;   // position of the next entry
  uint64_t consumed_ = 0;  // as read last
  bool used_ = false;
};

class RingConsumer {
 public:
  explicit RingConsumer(Bytes memory) : ring_(memory) {}

  struct Taken {
    RingStatus status = RingStatus::empty;
    size_t length = 0;
    EntryHeader::Kind kind = EntryHeader::Kind::datagram;

    bool carries() const { return EntryHeader::of(kind, length).carries(); }
  };
  /// Copies the next entry to `room`; `full`, and it stays, where that is too small for it.
  Taken take(Bytes room);
  /// The same, but an entry of a stream's bytes that finds too little room is taken in parts.
  Taken take_some(Bytes room);
  /// Gives the room of entries that were taken back to the producer.
  void give_back() { ring_.control().consumed.store(taken_, std::memory_order_release); }
  /// After give_back(): whether the producer has to be told that there is room. True once for each
  /// time that it asks.
  bool must_tell_room();

  /// Announces that this side sleeps. False: something came meanwhile, and it is awake.
  bool sleep();
  void awake() { ring_.control().asleep.store(0, std::memory_order_relaxed); }
  /// Whether take() would find something.
  bool something_waits() const;
  /// Tells the producer that nothing more is taken.
  void close() { ring_.control().closed.store(1, std::memory_order_release); }

 private:
  Taken next();
  Taken take_whole(const Taken& entry, Bytes room);

  const RingView ring_;
  uint64_t taken_ = 0;  // position of the next entry
  size_t part_ = 0;     // bytes of that one that were taken
  Taken cut_;           // what it is, where a part was taken
};

}  // namespace diwarp::llp
