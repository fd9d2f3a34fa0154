// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/pool.h"
#include "ddp/protection_context.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/context/counter_log.h"
#include "rnic/datagram/stag_miss_limit.h"
#include "rnic/datagram/ud/source_table.h"
#include "rnic/datagram/verdict.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

class ReceiveBuffers;
class RecordTable;
class RouteHeaders;

/// The Sends that come to a UD queue pair: places their segments into receives and delivers
/// messages that are whole. Messages that are not whole yet stay within shares of the table and of
/// the receives; where these are used up, the oldest one of an unproven source gives way, or, for a
/// proven source, one of the address that has most: nobody can shut others out with the beginnings
/// of messages. With the baton.
class UdMessages {
 public:
  UdMessages(ReceiveBuffers& receives, const ddp::ProtectionContext& protection,
             RecordTable& records, StagMissLimit& stag_misses, const LoggedCounters& counters,
             const DatagramOptions& options, const RouteHeaders* headers = nullptr);

  Verdict handle(const rdmap::DatagramSegment& segment, Source& source, Time now);

  /// Closes messages of which nothing came for the message timeout; their receives are used again.
  void expire(Time now);
  /// When expire() has something to do next, if no datagram comes; Time::max(): no message is
  /// open.
  Time next_expiry() {
    const OpenMessage* const oldest = by_age_.front();
    return oldest == nullptr ? Time::max() : saturating_add(oldest->last_progress, timeout_);
  }
  /// Gives every receive back.
  void reset();

 private:
  using Segment = rdmap::DatagramSegment;

  bool may_name_memory(const Source& source, Time now) const;
  Verdict deliver_single(const Segment& segment, Source& source, Time now);
  OpenMessage* find_open(Source& source, uint32_t msn);
  Verdict make_room(const Source& source);
  OpenMessage* to_give_way(const Source& source);
  OpenMessage* oldest_unproven();
  OpenMessage* oldest_of_fullest_address();
  OpenMessage& open(const Segment& segment, Source& source, Time now);
  Verdict place(const Segment& segment, OpenMessage& message, Time now);
  void progressed(OpenMessage& message, Time now);
  void deliver(OpenMessage& message, const Segment& last, Time now);
  void abandon(OpenMessage& message);
  void release(OpenMessage& message);
  bool is_too_short(const ReceiveEntry& receive) const;
  uint64_t write_header(const ReceiveEntry& entry, const Source& source, uint64_t bytes) const;
  void complete(ReceiveEntry& entry, const Segment& last, Source& source, uint64_t bytes, Time now);
  void fail_receive(ReceiveEntry& entry, const Source& source);

  ReceiveBuffers& receives_;
  const ddp::ProtectionContext& protection_;
  RecordTable& records_;
  StagMissLimit& stag_misses_;
  const LoggedCounters& counters_;
  const Duration timeout_;
  const uint32_t max_open_;
  const uint32_t max_open_per_source_;
  const RouteHeaders* const headers_;  // null: receives get none
  const uint32_t headroom_;            // bytes of a receive that stand before the message

  // At most max_open_. Declared before the list that names them.
  Pool<OpenMessage> messages_;
  IntrusiveList<OpenMessage, OpenAgeTag> by_age_;  // longest without progress first
  size_t open_count_ = 0;
};

}  // namespace diwarp::rnic
