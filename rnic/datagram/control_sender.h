// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ring.h"
#include "dgram/control.h"
#include "llp/datagram_link.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/waker.h"

namespace diwarp::rnic {

/// The control messages that a queue pair is about to send: few, for when there is no room for more
/// they are left out, which every receiver must be able to live with. With the baton.
class ControlSender final : public DatagramSource {
 public:
  /// Messages that wait at most.
  static constexpr size_t kPlaces = 128;
  /// The body of the longest.
  static constexpr size_t kLongest = dgram::kControlHeaderBytes + rdmap::kLongestErrorBytes;
  static_assert(kLongest >= dgram::kChallengeBytes);

  /// The queue pair is woken when there is something to send.
  explicit ControlSender(Waker& waker) : waker_(waker) {}

  /// Put a message in line. The datagram will have at most `limit` bytes. False if that is not
  /// enough, or there is no room.
  bool post_challenge(const llp::Destination& to, const dgram::Challenge& challenge, size_t limit);
  bool post_error(const llp::Destination& to, const rdmap::ErrorReport& error, size_t limit);
  bool waiting() const { return ring_ && !ring_->empty(); }

  /// Forgets all.
  void reset();

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  struct Message {
    llp::Destination to;
    size_t bytes = 0;
    std::array<std::byte, kLongest> body{};
  };
  bool has_room();
  bool put(const Message& message);

  Waker& waker_;
  std::unique_ptr<Ring<Message>> ring_;  // made when first needed: most queue pairs never do
};

}  // namespace diwarp::rnic
