// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "base/pool.h"
#include "ddp/protection_context.h"
#include "dgram/control.h"
#include "dgram/identity.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/sink_stags.h"
#include "rnic/datagram/verdict.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The Reads of a UD queue pair: asks for each in parts of at most 256 KiB, places what comes, and
/// ends it when all came, the target refused, or time is up. With the baton.
///
/// The request for a part names its sink by an STag of its own, which is good for that part alone,
/// and only in responses from the address that was asked. Once the part is over it names nothing
/// ever again, so that late and forged responses touch nothing.
///
/// A part is behind when nothing more is expected of it: its last segment came, or something of a
/// part that was asked for later, or nothing came for a while. What is missing of it may still
/// come, but it holds up the others no longer. So Reads go on where a request, or the end of a
/// response, was lost.
class UdReader final : public DatagramSource {
 public:
  /// How often one part is asked for again because of a Challenge: nobody can make a Read send
  /// more.
  static constexpr uint32_t kMaxChallenges = 4;
  /// Parts are behind when nothing came for the timeout divided by this.
  static constexpr int kNudgesPerTimeout = 4;

  /// `options` live as long as this. `max_ranges`: of what came of a Read. `wake` is called when
  /// there is something to send, and when begin_read() has room again.
  UdReader(const ddp::ProtectionContext& protection, SendQueue& sends, dgram::Identity& identity,
           Counters& counters, const ReadOptions& options, uint32_t max_ranges,
           std::function<void()> wake);
  ~UdReader() override;

  /// Begins anew, with this MSN.
  void set_first_msn(uint32_t first_msn) { next_msn_ = first_msn; }

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
  bool waiting() const { return !unsent_.empty(); }
  /// Reads under way.
  size_t under_way() const { return under_way_; }
  /// Forgets all Reads, and answers none: their entries are the send queue's to flush.
  void reset();

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  struct ReadTag;
  struct PartTag;
  struct UnsentTag;
  struct Part;
  struct Read;

  // The life of a Read.
  Read* idle_read() noexcept;
  void leave(Read& read);
  void finish(Read& read, WcStatus status, uint32_t vendor_error = 0);

  // Parts.
  uint64_t next_sink_offset();
  void revoke(Part& part);
  Part& spare_part(Read& read);
  void add_part(Read& read, uint64_t begin, uint64_t length);
  Part*& chain_of(STag sink);
  Part* find(STag sink);
  void ask(Read& read);
  bool has_more(const Read& read) const;
  void ask_from_the_start(Read& read, Time now);

  // Time.
  Time last_sign(Read& read);
  void hand_on_sign(Read& read);
  Time silent_at(Read& read);
  Time due(Read& read);
  Time nudge_due(const Read& read) const;
  bool is_over(Read& read, Time now);
  void retry(Read& read, Time now);
  void nudge(Read& read, Time now);
  void leave_behind(Part& part);

  // What comes.
  Verdict place(const rdmap::DatagramSegment& segment, const ddp::PlacementTarget& target,
                Part& part, Time now);
  void pass(Part& part, bool last);
  template <class Fits>
  Part* find_asked(const Address& from, Fits&& fits);

  // Sending.
  void end_unwritable();
  void add_echo(Part& part, DatagramBuilder& builder);
  void add_request(Part& part, DatagramBuilder& builder);

  const ddp::ProtectionContext& protection_;
  SendQueue& sends_;
  dgram::Identity& identity_;
  Counters& counters_;
  const ReadOptions& options_;
  const std::function<void()> wake_;
  SinkStags sink_stags_;
  const uint32_t max_ranges_;
  uint32_t next_msn_ = 0;
  uint64_t requests_ = 0;  // sent

  // At most max_outstanding. Declared before the lists that name them and their parts, so that they
  // outlive these.
  Pool<Read> reads_;
  std::vector<Part*> by_sink_;             // chains, by the STag's low bits
  IntrusiveList<Read, ReadTag> active_;    // in the order of their beginning
  IntrusiveList<Part, UnsentTag> unsent_;  // their request is to be sent
  uint32_t under_way_ = 0;
  bool begin_refused_ = false;
  Time next_expiry_ = Time::max();
};

}  // namespace diwarp::rnic
