// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/counters.h"
#include "ddp/protection_context.h"
#include "dgram/control.h"
#include "dgram/identity.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/ud/ud_read.h"
#include "rnic/datagram/ud/ud_read_parts.h"
#include "rnic/datagram/ud/ud_reads.h"
#include "rnic/datagram/verdict.h"
#include "rnic/datagram/waker.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The Reads of a UD queue pair: asks for each in parts of at most 256 KiB, places what comes, and
/// ends it when all came, the target refused, or time is up. A response is taken only from the
/// address that was asked. UdQueuePair owns it. With the baton.
class UdReader final : public DatagramSource {
 public:
  /// How often one part is asked for again because of a Challenge: nobody can make a Read send
  /// more.
  static constexpr uint32_t kMaxChallenges = 4;

  /// `max_ranges`: of what came of a Read. The queue pair is woken when there is something to send,
  /// and when begin_read() has room again.
  UdReader(const ddp::ProtectionContext& protection, SendQueue& sends, dgram::Identity& identity,
           Counters& counters, const ReadOptions& options, uint32_t max_ranges, Waker& waker);

  /// Begins anew, with this MSN.
  void set_first_msn(uint32_t first_msn) { parts_.start(first_msn); }

  enum class Begun : uint8_t {
    begun,
    full,  ///< as many as may be are under way
    no_memory,
  };
  /// Takes over the oldest pending entry of the send queue, which is a Read: has the queue hand it
  /// over, and answers it when it is done. Unless it was begun, nothing was done.
  Begun begin_read(SendEntry& entry, Time now);

  Verdict handle_response(const rdmap::DatagramSegment& segment, const Address& from, Time now);
  /// Takes an Error. False: it concerns no Read from here.
  bool handle_error(const rdmap::ErrorReport& report, const Address& from);
  /// Takes a Challenge: echoes it and asks again. False: it answers no request from here.
  bool handle_challenge(const dgram::Challenge& challenge, const Address& from);

  /// Ends Reads whose time is up, or asks again.
  void expire(Time now);
  /// When expire() has to be called again at the latest; it may be too early, for it is not moved
  /// with each byte that comes. Time::max(): no Read is under way.
  Time next_expiry() const { return next_expiry_; }

  /// Whether requests wait to be sent.
  bool waiting() const { return parts_.has_unsent(); }
  /// Reads under way.
  size_t under_way() const { return reads_.under_way(); }
  /// Forgets all Reads, and answers none: their entries are the send queue's to flush.
  void reset();

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  // The life of a Read.
  void leave(UdRead& read);
  void finish(UdRead& read, WcStatus status, uint32_t vendor_error = 0);
  void add_part(UdRead& read, uint64_t begin, uint64_t length);
  void ask(UdRead& read);
  void ask_from_the_start(UdRead& read, Time now);

  // Time.
  bool is_over(UdRead& read, Time now);
  void retry(UdRead& read, Time now);
  void nudge(UdRead& read, Time now);

  // Receiving.
  Verdict place(const rdmap::DatagramSegment& segment, const ddp::PlacementTarget& target,
                UdReadPart& part, Time now);
  void pass(UdReadPart& part, bool last);

  void end_unwritable();

  const ddp::ProtectionContext& protection_;
  SendQueue& sends_;
  Counters& counters_;
  const ReadOptions options_;
  Waker& waker_;
  UdReads reads_;
  UdReadParts parts_;  // of the same, which outlive it
  bool begin_refused_ = false;
  Time next_expiry_ = Time::max();
};

}  // namespace diwarp::rnic
