// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/counters.h"
#include "diwarp/attributes.h"
#include "rdmap/datagram.h"
#include "rnic/judgement.h"
#include "rnic/rd_peer.h"
#include "rnic/sink_stags.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class QueuePair;

/// Objects that are linked by `next`, made when first needed and then used again.
template <class T>
class Spares {
 public:
  T* take() {
    if (free_ == nullptr) {
      all_.push_back(std::make_unique<T>());
      return all_.back().get();
    }
    T* const taken = free_;
    free_ = taken->next;
    *taken = T{};
    return taken;
  }
  void give(T* object) {
    object->next = free_;
    free_ = object;
  }

 private:
  std::vector<std::unique_ptr<T>> all_;
  T* free_ = nullptr;
};

/// What an RD queue pair has to do for its own application (the requests of the send queue) and for
/// its peers (Read Requests that they sent): which datagrams that takes, and how it ends. With the
/// baton.
class RdWork {
 public:
  RdWork(QueuePair& queue_pair, SendQueue& sends, Counters& counters, ErrorScope scope);

  /// Begins anew; MSNs start there.
  void start(uint32_t first_msn);

  // --- Requests.

  /// A request of the send queue was handed over for this peer.
  void add(RdPeer& peer, SendEntry& entry);
  /// Whether its memory may be used now.
  bool has_memory(const SendEntry& entry) const;
  void fail(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error = 0);
  /// All of the peer's. They go in order.
  void fail_all(RdPeer& peer, WcStatus status);
  /// Whether all that is not done are Reads: done once more, they do no harm.
  bool only_reads(const RdPeer& peer) const;
  /// Whether nothing of what is under way can have been delivered, and all can be done anew.
  bool can_repeat(const RdPeer& peer, Time now) const;
  /// All is cut anew, from the beginning.
  void rewind(RdPeer& peer);

  // --- Datagrams.

  /// What the next datagram carries, at most `segment` bytes of a request of this kind, or
  /// `response` of a response. False: nothing for now.
  bool next(const RdCursor& cursor, size_t segment, size_t response, dgram::RdMark& mark) const;
  static void advance(RdCursor& cursor, const dgram::RdMark& mark);
  /// The peer acknowledged the datagram.
  void acknowledged(RdPeer& peer, const dgram::RdMark& mark);
  /// The peer refuses the first datagram that it has not acknowledged.
  void refused(RdPeer& peer, const dgram::RdCode& code);

  // --- Reads.

  /// A Read Response came, in order.
  Judgement take_response(RdPeer& peer, const rdmap::DatagramSegment& segment);
  void take_failure(RdPeer& peer, STag sink, const dgram::RdCode& code);
  /// A Read Request came, in order.
  Judgement take_request(RdPeer& peer, const rdmap::ReadRequest& request);
  /// Whether the memory it names may be read now.
  Judgement judge(const rdmap::ReadRequest& request) const;
  /// It may not any more.
  void fail_job(RdPeer& peer, RdJob& job, const dgram::RdCode& code);
  void drop_jobs(RdPeer& peer);

  /// An error came that ends all work of the queue pair. Asked once.
  bool take_fatal() { return std::exchange(fatal_, false); }
  void make_fatal() { fatal_ = true; }

 private:
  void finish(RdPeer& peer, SendEntry& entry, WcStatus status, uint32_t vendor_error);
  void fail_remotely(RdPeer& peer, SendEntry& entry, WcStatus status);
  static uint32_t unanswered(const RdPeer& peer, const SendEntry& entry);
  static uint32_t forget_marks(RdPeer& peer, const SendEntry& entry);
  void end_read(RdPeer& peer, RdRead& read);
  void answered_unknown(RdPeer& peer);
  void end_job(RdPeer& peer, RdJob& job);

  QueuePair& queue_pair_;
  SendQueue& sends_;
  Counters& counters_;
  const ErrorScope scope_;
  SinkStags sinks_;
  uint32_t send_msn_ = 0;
  uint32_t record_msn_ = 0;
  bool fatal_ = false;
  Spares<RdRead> reads_;
  Spares<RdJob> jobs_;
};

inline dgram::RdCode to_rd(const TerminateCode& code) { return {code.layer, code.type, code.code}; }
inline TerminateCode to_terminate(const dgram::RdCode& code) {
  return {code.layer, code.type, code.code};
}

}  // namespace diwarp::rnic
