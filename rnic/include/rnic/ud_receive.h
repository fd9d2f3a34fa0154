// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "diwarp/attributes.h"
#include "llp/datagram.h"
#include "rdmap/datagram.h"
#include "rnic/ud_sources.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class QueuePair;

/// The receiving half of a UD queue pair: judges each datagram, places it, and delivers messages
/// that are whole. A fault drops the datagram and counts the reason; nothing is answered.
class UdReceive {
 public:
  UdReceive(QueuePair& queue_pair, Counters& counters, const DatagramOptions& options);

  void handle(const llp::IncomingDatagram& datagram, Time now);

  /// Closes messages of which nothing came for the message timeout; their receives are used again.
  void expire(Time now);
  /// When expire() has something to do next, if no datagram comes; nothing: no message is open.
  std::optional<Time> next_expiry();

  /// Gives every receive back and forgets all sources.
  void reset();
  size_t open_messages() const { return open_count_; }

 private:
  using Segment = rdmap::SendSegment;

  void deliver_single(const Segment& segment, Source& source);
  OpenMessage* find_open(Source& source, uint32_t msn);
  std::optional<Counter> refuse_to_open(const Source& source) const;
  OpenMessage* open(const Segment& segment, Source& source, Time now);
  void place(const Segment& segment, OpenMessage& message, Time now);
  void deliver(OpenMessage& message);
  void abandon(OpenMessage& message);
  void close(OpenMessage& message);
  void complete(ReceiveEntry& entry, WcStatus status, const Source& source, bool solicited,
                uint64_t bytes);
  void fail_receive(ReceiveEntry& entry, const Source& source);
  void drop(Counter reason) { counters_.add(reason); }

  QueuePair& queue_pair_;
  Counters& counters_;
  const uint32_t q_key_;
  const Duration timeout_;
  const uint32_t max_open_;
  const uint32_t max_open_per_source_;

  // Messages are made when first needed and then used again; at most max_open_.
  std::vector<std::unique_ptr<OpenMessage>> messages_;
  std::vector<OpenMessage*> idle_;
  // Declared before the lists that name its members, so that it outlives them.
  SourceTable sources_;
  IntrusiveList<OpenMessage, OpenAgeTag> by_age_;  // longest without progress first
  size_t open_count_ = 0;
};

}  // namespace diwarp::rnic
