// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/ring.h"
#include "ddp/header.h"
#include "diwarp/address.h"
#include "rdmap/datagram.h"
#include "rnic/datagram_origin.h"

namespace diwarp::rnic {

/// The control messages that a queue pair is about to send: few, for when there is no room for more
/// they are left out, which every receiver must be able to live with. With the baton.
class ControlSender final : public DatagramOrigin {
 public:
  /// Messages that wait at most.
  static constexpr size_t kPlaces = 128;
  /// The longest, without the CRC: an Error about a Read Request, with 6 bytes before its headers.
  static constexpr size_t kLongest = rdmap::kPrefixBytes + rdmap::kControlHeaderBytes + 6 +
                                     ddp::kUntaggedHeaderBytes + rdmap::kReadRequestBytes;

  /// `wake` is called when there is something to send.
  explicit ControlSender(std::function<void()> wake) : wake_(std::move(wake)) {}

  /// What precedes all messages from now on.
  void start(uint32_t incarnation) { incarnation_ = incarnation; }

  /// Puts a message in line. The datagram will have at most `limit` bytes. False if that is not
  /// enough, or there is no room.
  bool post(const Address& to, const rdmap::ControlMessage& message, size_t limit);
  bool waiting() const { return ring_ && !ring_->empty(); }

  /// Forgets all.
  void reset();

  void fill(DatagramRoom& room, Time now) override;
  void sent(const DatagramMark& mark) override;
  void refused(const DatagramMark& mark, int error) override;

 private:
  struct Message {
    Address to;
    size_t bytes = 0;
    std::array<std::byte, kLongest> contents{};  // all but the CRC
  };

  const std::function<void()> wake_;
  uint32_t incarnation_ = 0;
  std::unique_ptr<Ring<Message>> ring_;  // made when first needed: most queue pairs never do
};

}  // namespace diwarp::rnic
