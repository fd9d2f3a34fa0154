// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/endpoint.h"
#include "common/pingpong_ends.h"
#include "common/poller.h"

namespace diwarp::tools {

/// The shape of either end of a ping-pong of messages.
EndpointShape echo_shape(QpType transport, Operation operation, size_t size);

/// The near end of a ping-pong of messages: sends message 0, 1, 2 ... and waits for the answer to
/// each, of a group that of every member. Over UD an answer that does not come is asked for again.
class Pinger final : public NearEnd {
 public:
  Pinger(Endpoint& endpoint, const Peers& peers, bool verify);

  /// One round trip of the next message: the time from the post to the answer; nothing if it took
  /// more than one try. Throws Failure if no answer comes at all, or one with wrong contents.
  std::optional<Duration> ping() override;

 private:
  void prepare();
  void await_sent();
  bool try_once(Time posted);
  bool accept(const WorkCompletion& completion);
  bool is_answer(const WorkCompletion& receive, std::span<const std::byte> message) const;
  void repost_answered();
  void settle();

  Endpoint& endpoint_;
  Peers peers_;
  Poller poller_;
  bool verify_;
  bool lossy_;
  Duration patience_;  // of one try
  Duration limit_;     // of all tries of a message
  uint64_t number_ = 0;
  uint64_t sends_open_ = 0;
  std::vector<bool> answered_;     // by which member
  size_t awaited_ = 0;             // how many have not answered
  std::vector<uint64_t> answers_;  // wr_ids: posted again outside of the measured time
};

/// The far end: answers each message with its like. A message that comes again is answered again.
class Echoer final : public FarEnd {
 public:
  Echoer(Endpoint& endpoint, Control& control, bool verify);

  void run() override;

 private:
  void take(const WorkCompletion& completion);
  void take_message(const WorkCompletion& receive);
  std::optional<uint64_t> number_to_answer(const WorkCompletion& receive,
                                           std::span<const std::byte> message) const;
  void answer(uint64_t number);

  Endpoint& endpoint_;
  Control& control_;
  Poller poller_;
  bool verify_;
  Duration limit_;  // without any message
  uint64_t expected_ = 0;
  uint64_t answers_ = 0;
  uint64_t sends_open_ = 0;
};

}  // namespace diwarp::tools
