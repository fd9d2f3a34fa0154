// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/control.h"
#include "common/endpoint.h"

namespace diwarp::tools {

/// The end of a ping-pong that asks, and measures.
class NearEnd {
 public:
  struct Counts {
    uint64_t sent = 0;
    /// Messages that were not answered in time: they or their answers got lost.
    uint64_t lost = 0;
    /// Answers of which a part came, where the shape takes them.
    uint64_t partial = 0;
  };

  virtual ~NearEnd() = default;

  /// One round: the time from the post to the answer; nothing if it took more than one try. Throws
  /// Failure if no answer comes at all, or one with wrong contents.
  virtual std::optional<Duration> ping() = 0;

  /// Since the last reset_counts().
  const Counts& counts() const { return counts_; }
  void reset_counts() { counts_ = {}; }

 protected:
  Counts counts_;
};

/// The end that answers.
class FarEnd {
 public:
  virtual ~FarEnd() = default;

  /// Answers until the peer says something in the control channel.
  virtual void run() = 0;
};

/// How an end of a ping-pong of Writes looks for what arrives.
enum class Waiting : uint8_t {
  progressing,  ///< with Device::progress() between two looks
  idle,         ///< at the memory alone, yielding: the RNIC thread does the work
};

/// Throws the Failure that a message came with other contents than were sent, from byte `at` on.
[[noreturn]] void fail_contents(uint64_t number, size_t size, const Address& peer, size_t at);

/// Whether a round is one operation; else it is one there and one back.
bool is_one_sided(Operation operation);

EndpointShape near_shape(QpType transport, Operation operation, size_t size);
EndpointShape far_shape(QpType transport, Operation operation, size_t size);

/// For endpoints of these shapes, before they are paired.
std::unique_ptr<NearEnd> make_near_end(Endpoint& endpoint, const Peers& peers, bool verify,
                                       Waiting waiting = Waiting::progressing);
std::unique_ptr<FarEnd> make_far_end(Endpoint& endpoint, Control& control, Operation operation,
                                     bool verify, Waiting waiting = Waiting::progressing);

}  // namespace diwarp::tools
