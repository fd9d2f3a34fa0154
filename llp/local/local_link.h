// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "llp/favoured_destination.h"
#include "llp/forwarding.h"
#include "llp/local/ring_user.h"

namespace diwarp::llp {

class LocalPeers;

/// A link whose datagrams to and from queue pairs of this host go through shared memory, once it
/// sends to them all the time. All others, and those to groups, go by the link below.
class LocalLink final : public ForwardingDatagramLink, public RingUser {
 public:
  LocalLink(std::unique_ptr<DatagramLink> below, LocalPeers& peers);
  ~LocalLink() override;

  SendResult send(std::span<const OutgoingDatagram> burst) override;
  size_t receive(ReceiveBatch& batch) override;
  bool set_watched(bool watched) override;
  InputQueue* input_queue() const override;
  void set_key(void* key) override;

  // --- RingUser.

  uint32_t hash() const override;
  bool serves(const LocalRoute& route) const override;
  void add(std::shared_ptr<RingIn> ring) override;
  void add(std::shared_ptr<RingOut> ring) override;
  void nobody_there(const Destination& to) override;
  void woken() override;
  void end(const LocalConnection& connection, std::optional<uint32_t> number) override;
  void end_idle() override;

 private:
  struct Rings {
    std::vector<std::shared_ptr<RingOut>> out;
    std::vector<std::shared_ptr<RingIn>> in;  // first those that are awake
    size_t awake = 0;
    size_t latest = 0;                      // of `out`: where the last datagram went
    size_t first = 0;                       // of `in`: where the next look begins
    bool look_at_all = false;               // also at those that sleep
    LookPlan below{kReceivesPerLookBelow};  // when the link below is looked at
    Destination sought;                     // without a port: nothing
    Destination nobody;                     // what was sought last, in vain
    SearchBackoff backoff;
  };

  /// A ring that was found empty so often in a row sleeps.
  static constexpr uint32_t kEmptyLooksUntilSleep = 4096;
  /// Datagrams that one look takes from a ring.
  static constexpr size_t kDatagramsPerLook = 64;

  /// What is left of a batch's memory: datagrams are put there one behind the other.
  struct Room {
    size_t slot = 0;
    size_t used = 0;  // bytes of that slot
  };

  Rings& rings();
  bool has_memory() noexcept;
  RingOut* ring_to(const Destination& to);
  size_t run_length(std::span<const OutgoingDatagram> burst, const RingOut* ring);
  SendResult send_over(RingOut& ring, std::span<const OutgoingDatagram> run);
  SendResult send_below(std::span<const OutgoingDatagram> run);
  SendResult wait_for_ring(const Destination& to);
  void seek(const Destination& to);
  void leave(RingOut& ring);
  void drop(RingOut& ring);
  bool take_from(RingIn& ring, ReceiveBatch& batch, Room& room);
  size_t take_from_rings(ReceiveBatch& batch);
  void let_silent_sleep();
  bool is_preceded(RingIn& ring);
  void look_at_awake(ReceiveBatch& batch, Room& room);
  void look_at_sleeping(ReceiveBatch& batch, Room& room);
  bool fall_asleep(size_t awake_ring);
  void end_broken(RingIn& ring);
  void drop_ended();

  LocalPeers& peers_;
  DestinationStreak streak_;
  std::unique_ptr<Rings> rings_;
};

}  // namespace diwarp::llp
