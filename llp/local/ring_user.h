// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "base/intrusive_list.h"
#include "diwarp/address.h"
#include "llp/datagram_link.h"
#include "llp/local/local_connection.h"
#include "llp/local/local_packet.h"
#include "llp/local/ring.h"
#include "llp/local/shared_memory.h"

namespace diwarp::llp {

/// So often a datagram that finds a ring full is tried anew before it is lost.
inline constexpr uint32_t kTriesForRoom = 256;
/// The consumer has to take one of so many parts of the ring for as many tries more.
inline constexpr size_t kPartsOfRing = 8;

/// How long a datagram that finds a ring full is held back instead of lost: while the receiver
/// reads, but is slower than the sender. One that has stopped makes nobody wait.
class RingPatience {
 public:
  /// After put() found the ring full: whether to try again.
  bool lasts(const RingProducer& producer) {
    if (producer.consumed() - consumed_ >= producer.capacity() / kPartsOfRing) {
      consumed_ = producer.consumed();
      tries_ = 0;
    }
    if (tries_ == kTriesForRoom) return false;
    ++tries_;
    return true;
  }

 private:
  uint64_t consumed_ = 0;  // when it began to wait
  uint32_t tries_ = 0;     // since then
};

/// A ring that this side fills.
struct RingOut {
  RingOut(uint32_t ring, const Destination& destination, bool with_crc, SharedMemory shared,
          std::shared_ptr<LocalConnection> over)
      : number(ring),
        to(destination),
        crc(with_crc),
        memory(std::move(shared)),
        connection(std::move(over)),
        producer(memory.bytes()) {}

  const uint32_t number;
  const Destination to;
  const bool crc;  // one of both ends wants CRCs
  const SharedMemory memory;
  const std::shared_ptr<LocalConnection> connection;
  RingProducer producer;
  RingPatience patience;
};

/// A ring that this side reads.
struct RingIn {
  RingIn(uint32_t ring, const LocalRoute& between, SharedMemory shared,
         std::shared_ptr<LocalConnection> over)
      : number(ring),
        route(between),
        memory(std::move(shared)),
        connection(std::move(over)),
        consumer(memory.bytes()) {}

  const uint32_t number;
  const LocalRoute route;
  const SharedMemory memory;
  const std::shared_ptr<LocalConnection> connection;
  RingConsumer consumer;
  uint32_t local = 0;   // a link's number of the address that the source sends to
  bool fresh = true;    // nothing was read of it yet
  bool ended = false;   // nothing more comes: it goes once it is empty
  bool broken = false;  // what is in it is not to be read
  bool done = false;    // it goes now
  uint32_t empty_looks = 0;
};

struct RouteTag;

/// A link or a stream whose bytes may go through rings, as LocalPeers knows it. It owns its rings;
/// where it drops one, LocalPeers finds it gone. With the baton.
class RingUser : public ListNode<>, public ListNode<RouteTag> {
 public:
  virtual ~RingUser() = default;

  /// Whether it stands among those that have something to hand out.
  bool is_announced() const { return ListNode<>::linked(); }
  /// Of the source of input that the engine is to ask. Null: it is not in an engine's service, and
  /// serves nothing.
  void* key() const { return key_; }
  /// route_hash() of all routes that may end here.
  virtual uint32_t hash() const = 0;
  /// Whether what goes this way comes to this one.
  virtual bool serves(const LocalRoute& route) const = 0;
  virtual void add(std::shared_ptr<RingIn> ring) = 0;
  virtual void add(std::shared_ptr<RingOut> ring) = 0;
  /// No ring leads to the destination that was sought.
  virtual void nobody_there(const Destination& to) = 0;
  /// Something is in rings that slept.
  virtual void woken() = 0;
  /// There may be room again in rings over this connection, or the connection is over.
  virtual void room_made(const LocalConnection& /*connection*/) {}
  /// Nothing more comes over the rings of this connection: all of them, or that with the number.
  virtual void end(const LocalConnection& connection, std::optional<uint32_t> number) = 0;
  /// Ends rings that it fills and did not use since the last call.
  virtual void end_idle() = 0;

 protected:
  void set_key_of_user(void* key) {
    key_ = key;
    if (key == nullptr && is_announced()) ListNode<>::unlink();
  }

 private:
  void* key_ = nullptr;
};

/// Searches that found nothing make the next one rarer.
class SearchBackoff {
 public:
  /// A search is due by its user's rule: whether it is to be made.
  bool take_turn() {
    if (skipped_ >= (uint32_t{1} << failures_) - 1) {
      skipped_ = 0;
      return true;
    }
    ++skipped_;
    return false;
  }
  void failed() {
    if (failures_ < kMaxDoublings) ++failures_;
  }
  void succeeded() { failures_ = 0; }

 private:
  /// So often a failure doubles the searches that are skipped.
  static constexpr uint32_t kMaxDoublings = 12;

  uint32_t failures_ = 0;
  uint32_t skipped_ = 0;
};

}  // namespace diwarp::llp
