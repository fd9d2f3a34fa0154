// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "endpoint.h"
#include "options.h"
#include "protocol.h"

namespace interop {

/// The outcome of an exchange.
struct Outcome {
  uint64_t steps = 0;
  uint64_t bytes = 0;
  Ending ending;
  /// Of the operation that was wrong, or that the end found: the first that failed.
  std::string failed_status;
};

/// One connection's share of the protocol in protocol.h. Throws Failure, ConnectionEnded.
class Exchange {
 public:
  Exchange(Endpoint& endpoint, const Options& options) : endpoint_(endpoint), options_(options) {}

  /// All steps.
  void run_client();
  void run_server();
  /// The end of the protocol; then the client disconnects.
  void part();
  /// So far: what was done before an exception counts.
  Outcome& outcome() { return outcome_; }

 private:
  // Both sides of a step.
  Message expose_for(const Message& order);
  void act(const Message& order, const Message& target);
  void act_wrongly(const Message& order, Message target);
  void verify_exposed(const Message& order);
  void verify_received(const Message& order, uint32_t key);
  void verify_invalidated(const Message& order, const Completion& completion, uint32_t key) const;
  void verify_solicited(const Message& order);
  void verify_surroundings(const Message& order) const;
  void end_by_fault(const Message& order);

  template <typename Step>
  void do_step(const Message& order, Step step);
  void client_step(Message order);
  void server_step(const Message& order);

  void send(const Message& message);
  void complete(const Work& work);
  using Next = std::optional<Completion> (Endpoint::*)(Duration);
  std::optional<Completion> next_or_end(Next next, const std::string& what);
  Completion await(Next next, const std::string& what);
  Message receive(Type expected);
  Message receive_message();
  Completion receive_data();
  void die_if_told();
  std::span<std::byte> exposed(const Message& order);

  Endpoint& endpoint_;
  const Options& options_;
  Outcome outcome_;
  std::vector<std::byte> region_;
};

}  // namespace interop
