// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/counters.h"
#include "ddp/scatter.h"
#include "llp/datagram.h"
#include "rnic/datagram_burst.h"
#include "rnic/endpoint.h"
#include "rnic/pacer.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class QueuePair;

/// The sending half of a UD queue pair: cuts messages into datagrams, a burst at a time.
class UdTransmit {
 public:
  /// What a burst needs from the queue pair.
  struct Context {
    SendQueue& sends;
    llp::DatagramLink& link;
    DatagramBurst& burst;
    Counters& counters;
    const QueuePair& queue_pair;  ///< judges the memory of requests
  };

  UdTransmit(uint32_t segment, uint64_t max_rate) : segment_(segment) {
    pacer_.set_rate(max_rate, Time{});
  }

  /// Draws what a queue pair draws on its way to rts: a new incarnation and a new first MSN.
  void start(uint32_t incarnation, uint32_t first_msn);
  void set_max_rate(uint64_t rate, Time now) { pacer_.set_rate(rate, now); }

  /// Sends one burst.
  Served run(Context context, Time now);
  bool paced() const { return pacer_.limited(); }
  /// When pacing lets the next datagram go; asked after run() left sends behind with
  /// Pending::nothing, where paced().
  Time ready_at() const { return pacer_.ready_at(); }
  uint32_t incarnation() const { return incarnation_; }

 private:
  void fill(Context& context);
  /// False when the burst has no room for more.
  bool add_message(Context& context, const SendEntry& entry, uint32_t msn, uint64_t offset);
  bool add_segment(Context& context, const SendEntry& entry, uint32_t msn, uint64_t offset,
                   uint64_t length);
  void advance(Context& context, size_t sent);
  Pending after_refusal(Context& context, int error);
  void finish(Context& context, WcStatus status, uint32_t vendor_error);

  const uint32_t segment_;  // largest datagram by the application's choice; 0: none
  Pacer pacer_;
  uint32_t incarnation_ = 0;
  uint32_t next_msn_ = 0;  // of the oldest message that is not done
  uint64_t offset_ = 0;    // how much of it has been sent
  bool resized_ = false;   // it was refused for its size once
  ddp::SgeCursor cursor_;
};

}  // namespace diwarp::rnic
