// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include <diwarp/verbs.h>

#include "soak/offers.h"
#include "soak/process.h"

namespace soak {

/// What came from peers: contents, order and numbers of messages, and what they say was written.
class Arrivals {
 public:
  Arrivals(Process& process, Offers& offers) : process_(process), offers_(offers) {}

  void receive_done(Line& line, Request& request, const diwarp::WorkCompletion& wc);
  void record_came(const diwarp::WorkCompletion& wc);

 private:
  void unread_came(Line& line, const diwarp::WorkCompletion& wc);
  void message_came(Line& line, const diwarp::WorkCompletion& wc, std::span<std::byte> bytes);
  void immediate_came(Line& line, const diwarp::WorkCompletion& wc);
  void numbered(Line& line, const Head& head);
  void numbered_datagram(Line& line, const Head& head);
  void told(Line& line, const Head& head);
  void invalidated(const Head& head, const diwarp::WorkCompletion& wc);

  Process& process_;
  Offers& offers_;
};

}  // namespace soak
