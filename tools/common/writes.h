// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/endpoint.h"
#include "common/mark.h"
#include "common/pingpong_ends.h"

namespace diwarp::tools {

// A ping-pong of RDMA Writes: each end writes into the other's memory, looks at its own, and never
// at a completion queue.

/// The shape of either end.
EndpointShape writes_shape(size_t size);

/// The common part of both ends: messages of one way and of the other, in two slots in turn. When
/// the peer's message of a number comes, this end's last but one has arrived, so its slot is free.
class WrittenMessages {
 public:
  WrittenMessages(Endpoint& endpoint, Control& control, bool verify, Way way, Waiting waiting);

  void prepare(uint64_t number);
  void post(uint64_t number) { endpoint_.post_send(slot_of(number), false); }
  /// True once the peer's message of this number lies in memory; false if nothing came in time, or
  /// the peer says something else. Throws Failure if its contents are wrong.
  bool await(uint64_t number);

  [[noreturn]] void fail_silence() const;

 private:
  static constexpr uint32_t kSlots = 2;
  friend EndpointShape writes_shape(size_t size);

  static uint32_t slot_of(uint64_t number) { return static_cast<uint32_t>(number % kSlots); }
  bool look(uint64_t number);
  void verify(uint64_t number);

  Endpoint& endpoint_;
  Control& control_;
  bool verify_;
  Way way_;
  Waiting waiting_;
  Duration limit_;
};

class WritePinger final : public NearEnd {
 public:
  WritePinger(Endpoint& endpoint, Control& control, bool verify, Waiting waiting);
  std::optional<Duration> ping() override;

 private:
  WrittenMessages messages_;
  uint64_t number_ = 0;
};

class WriteEchoer final : public FarEnd {
 public:
  WriteEchoer(Endpoint& endpoint, Control& control, bool verify, Waiting waiting);
  void run() override;

 private:
  Control& control_;
  WrittenMessages messages_;
  uint64_t number_ = 0;
};

}  // namespace diwarp::tools
