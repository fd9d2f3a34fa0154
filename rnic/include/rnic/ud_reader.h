// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "base/interval_set.h"
#include "base/intrusive_list.h"
#include "diwarp/attributes.h"
#include "rdmap/datagram.h"
#include "rnic/datagram_origin.h"
#include "rnic/judgement.h"
#include "rnic/sink_stags.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class QueuePair;

/// The Reads of a UD queue pair: asks for each in requests of at most 256 KiB, places what comes, and
/// ends it when all came, the target refused, or time is up. With the baton.
///
/// A request names its sink by an STag of its own, which is good for that range of that Read alone,
/// and only in responses from the address that was asked. Once the request is over it names nothing
/// ever again, so that late and forged responses touch nothing.
class UdReader final : public DatagramOrigin {
 public:
  /// `max_ranges`: of what came of a Read. `wake` is called when there is something to send, and when
  /// begin() has room again.
  UdReader(QueuePair& queue_pair, SendQueue& sends, Counters& counters, const ReadOptions& options,
           size_t max_ranges, std::function<void()> wake);
  ~UdReader() override;

  /// Begins anew: what precedes requests from now on, and the first one's MSN.
  void start(uint32_t incarnation, uint32_t first_msn);

  /// Takes a Read over, whose entry is handed over to it (SendQueue::hand_over()) and comes back by
  /// SendQueue::answered(), never from within this call. False, and nothing was done, while as many
  /// as may be are under way.
  bool begin(SendEntry& entry, Time now);

  Judgement handle_response(const rdmap::DatagramSegment& segment, const Address& from, Time now);
  /// Takes an Error. False: it concerns no Read from here.
  bool handle_error(const rdmap::ErrorReport& report, const Address& from);
  /// Takes a Challenge: echoes it and asks again. False: it answers no request from here.
  bool handle_challenge(const rdmap::Cookie& cookie, const Address& from);

  /// Ends Reads whose time is up, or asks again.
  void expire(Time now);
  /// When expire() has to be called again at the latest; it may be too early, for it is not moved
  /// with each byte that comes. Nothing: no Read is under way.
  std::optional<Time> next_expiry() const { return next_expiry_; }

  /// Whether requests wait to be sent.
  bool waiting() const { return !unsent_.empty(); }
  /// Reads under way.
  size_t under_way() const { return under_way_; }
  /// Forgets all Reads, and answers none: their entries are the send queue's to flush.
  void reset();

  void fill(DatagramRoom& room, Time now) override;
  void sent(const DatagramMark& mark) override;
  void refused(const DatagramMark& mark, int error) override;

 private:
  struct ReadTag;
  struct PartTag;
  struct UnsentTag;
  struct Part;
  struct Read;

  Duration timeout_of(const Read& read) const;
  Time due(const Read& read) const;
  void set_due(Read& read, Time now);
  void ask(Read& read);
  Part* new_part(Read& read);
  void drop_unwritable();
  bool add_echo(Part& part, DatagramRoom& room);
  bool add_request(Part& part, DatagramRoom& room);
  Part* find(STag sink) const;
  Judgement place(const rdmap::DatagramSegment& segment, Part& part, Time now);
  void pass(Read& read, Part& part);
  void nudge(Read& read, Time now);
  void retry(Read& read, Time now);
  void expire(Read& read, Time now);
  void revoke(Part& part);
  void finish(Read& read, WcStatus status);

  QueuePair& queue_pair_;
  SendQueue& sends_;
  Counters& counters_;
  const ReadOptions options_;
  const size_t max_ranges_;
  const std::function<void()> wake_;
  SinkStags sink_stags_;
  uint32_t incarnation_ = 0;
  uint32_t next_msn_ = 0;

  // Made when first needed, and then used again; at most max_outstanding.
  std::vector<std::unique_ptr<Read>> reads_;
  std::vector<Part*> by_sink_;  // chains, by the STag's low bits
  IntrusiveList<Read, ReadTag> active_;
  IntrusiveList<Read, ReadTag> idle_;
  IntrusiveList<Part, UnsentTag> unsent_;
  size_t under_way_ = 0;
  bool refused_begin_ = false;
  std::optional<Time> next_expiry_;
};

}  // namespace diwarp::rnic
