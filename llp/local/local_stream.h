// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "llp/favoured_destination.h"
#include "llp/forwarding.h"
#include "llp/local/ring_user.h"

namespace diwarp::llp {

class LocalPeers;

/// A stream whose bytes go through shared memory once both ends are found to be on this host. Each
/// direction for itself leaves the stream below where everything sent was taken, at a position that
/// the sender writes into the ring, and comes back where the ring says so. The stream below tells
/// of the connection's end: in order once the ring is read, by a reset at once.
class LocalStream final : public ForwardingStream, public RingUser {
 public:
  /// `whole`: nothing has passed over it yet. Else it stays on the wire.
  LocalStream(std::unique_ptr<Stream> below, bool whole);
  ~LocalStream() override;

  /// From now on it meets others. Once, with the baton.
  void serve(LocalPeers& peers);

  // --- Stream.

  IoResult send(std::span<const ConstBytes> pieces) override;
  bool allow_zero_copy(size_t from, Counters& counters) override {
    return inner().allow_zero_copy(from, counters);
  }
  /// Rings copy.
  IoResult send_zero_copy(std::span<const ConstBytes> pieces) override;
  uint64_t zero_copy_calls() const override { return inner().zero_copy_calls(); }
  uint64_t zero_copy_released() override { return inner().zero_copy_released(); }
  bool trim() override { return inner().trim(); }
  IoResult receive(Bytes buffer) override;
  IoResult receive_into(std::span<const Bytes> buffers) override;
  bool leave_engine() override;
  void abort() override;
  void stay_on_wire() override { may_leave_wire_ = false; }
  bool send_needs_crc() const override;
  bool received_needs_crc() const override { return received_needs_crc_; }
  bool set_watched(bool watched) override;
  RoomNotice room_notice() const override;
  InputQueue* input_queue() const override;
  void set_key(void* key) override;

  // --- RingUser.

  uint32_t hash() const override;
  bool serves(const LocalRoute& route) const override;
  void add(std::shared_ptr<RingIn> ring) override;
  void add(std::shared_ptr<RingOut> ring) override;
  void nobody_there(const Destination& to) override;
  void woken() override;
  void room_made(const LocalConnection& connection) override;
  void end(const LocalConnection& connection, std::optional<uint32_t> number) override;
  void end_idle() override;

 private:
  struct Rings {
    // The way out.
    std::shared_ptr<RingOut> offered;  // not entered yet
    std::shared_ptr<RingOut> out;      // entered
    uint32_t full_in_row = 0;          // sends that found it full
    RoomNotice notice = RoomNotice::none;
    bool seeking = false;
    SearchBackoff backoff;
    std::optional<Time> give_up;  // where rings are required: the end of the search

    // The way in. Of several rings the first is read; another one can have come before its end.
    std::vector<std::shared_ptr<RingIn>> in;
    bool entered = false;            // the first one
    std::optional<uint64_t> begins;  // the position at which it is
    std::vector<std::byte>
        behind;  // bytes that came by the wire before it was known, and follow it
    bool asleep = false;
    LookPlan wire{kReceivesPerLookBelow};
    std::optional<Time> over_until;  // its connection is over: the end has to come by then
  };

  Rings& rings();
  bool has_memory() noexcept;
  bool is_required() const;
  bool leaves_wire() const;

  RingOut* ring_out();
  IoResult note_sent(std::span<const ConstBytes> pieces, const IoResult& result);
  IoResult send_over(RingOut& ring, std::span<const ConstBytes> pieces);
  RingStatus put_all(RingOut& ring, std::span<const ConstBytes> pieces, size_t& taken);
  void note_full(RingOut& ring);
  IoResult wait_for_ring();
  void seek();
  void enter();
  bool is_idle(RingOut& ring) const;
  void leave();

  IoResult receive_on_wire(std::span<const Bytes> buffers);
  IoResult receive_behind(Bytes room);
  IoResult receive_before_ring(std::span<const Bytes> buffers);
  size_t take_back(std::span<const Bytes> buffers, size_t bytes, size_t excess);
  bool knows_begin();
  IoResult receive_over(std::span<const Bytes> buffers);
  IoResult take(std::span<const Bytes> buffers);
  IoResult look_at_wire(std::span<const Bytes> buffers);
  IoResult look_for_end();
  void drop_first();
  bool fall_asleep();
  void leave_rings();

  LocalPeers* peers_ = nullptr;  // null: not served
  std::unique_ptr<Rings> rings_;
  uint64_t sent_ = 0;      // bytes, over the stream below
  uint64_t received_ = 0;  // the same
  uint32_t streak_ = 0;    // sends since the last search
  bool may_leave_wire_;
  bool received_needs_crc_ = true;
  bool at_boundary_ = true;  // everything that was given to send() was taken
};

}  // namespace diwarp::llp
