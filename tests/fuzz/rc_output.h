// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "fuzz/rc_memory.h"
#include "fuzz/rc_startup.h"

namespace diwarp::fuzz {

/// A request of diwarp to the peer.
struct RcAsked {
  bool atomic = false;
  uint32_t sink = 0;  ///< of a Read: STag, tagged offset and bytes that are left of it
  uint64_t offset = 0;
  uint32_t left = 0;
  uint32_t identifier = 0;  ///< of an atomic
};

/// Checks each segment that diwarp sends on one connection after another: its numbers, and its
/// bytes.
class RcOutput {
 public:
  explicit RcOutput(const RcMemory& memory) : memory_(memory) {}

  void restart(const RcStart& start);
  /// A Send of these bytes of the outbox was posted.
  void expect_send(uint64_t at, uint64_t length) { sends_.push_back({at, length}); }
  void take(std::span<const std::byte> ulpdu);

  std::deque<RcAsked>& asked() { return asked_; }

 private:
  struct Send {
    uint64_t at = 0;
    uint64_t length = 0;
  };

  void take_tagged(std::span<const std::byte> ulpdu, bool last);
  void take_untagged(std::span<const std::byte> ulpdu, bool last);
  void take_send(std::span<const std::byte> payload, uint64_t mo, bool last);
  void take_request(std::span<const std::byte> body, bool atomic);

  const RcMemory& memory_;
  bool over_ = false;                   // a Terminate was sent
  std::array<uint32_t, 4> next_msn_{};  // of each untagged queue
  std::deque<Send> sends_;
  std::deque<RcAsked> asked_;
};

}  // namespace diwarp::fuzz
