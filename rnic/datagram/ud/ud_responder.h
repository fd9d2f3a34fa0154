// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "base/pool.h"
#include "ddp/protection_context.h"
#include "ddp/segmentation.h"
#include "ddp/stag_table.h"
#include "dgram/control.h"
#include "diwarp/attributes.h"
#include "diwarp/datagram_options.h"
#include "rdmap/datagram.h"
#include "rnic/context/counter_log.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/size_refusals.h"
#include "rnic/datagram/verdict.h"
#include "rnic/datagram/waker.h"

namespace diwarp::dgram {
class AddressValidation;
}

namespace diwarp::rnic {

class ControlSender;
class ErrorReports;
struct ResponseLane;
struct Source;

struct ResponseTurnTag;
struct ResponseTag;

/// A Read Request that waits for its response, or is being answered.
struct Response : ListNode<ResponseTag> {
  ResponseLane* lane = nullptr;
  uint32_t msn = 0;
  uint32_t nonce = 0;
  rdmap::ReadRequest request;
  size_t datagram_bytes = 0;   ///< of the request
  uint32_t offset = 0;         ///< how much was sent
  SizeRefusals size_refusals;  ///< since something of it was sent
};

/// The responses to one source, in the order of its requests.
struct ResponseLane : ListNode<ResponseTurnTag> {
  Source* source = nullptr;
  IntrusiveList<Response, ResponseTag> responses;
};

/// Answers others' Reads over datagrams. A source that was not validated is challenged instead, and
/// nothing said of the memory that it names, unless the response is no longer than the request (and
/// the region has not `Access::validated_source`). Sources are served in turn, within their bounds.
/// With the baton.
class UdResponder final : public DatagramSource {
 public:
  /// The queue pair is woken when there is something to send.
  UdResponder(const ddp::ProtectionContext& protection, const dgram::AddressValidation& validation,
              ControlSender& control, ErrorReports& errors, const LoggedCounters& counters,
              const ReadOptions& options, Waker& waker);
  ~UdResponder() override;

  /// Takes a Read Request that came in a datagram of `datagram_bytes`, not by way of a group.
  Verdict handle(const rdmap::DatagramSegment& segment, Source& source, size_t datagram_bytes,
                 Time now);
  /// Has the source show that it hears what is sent to its address, if a datagram of so many bytes
  /// from it may be answered with that.
  Verdict challenge(const Source& source, const rdmap::ReadRequest& request, size_t datagram_bytes,
                    Time now);

  bool waiting() const { return !turns_.empty(); }
  /// Forgets all requests. Before the sources go.
  void reset();

  void fill(DatagramBuilder& builder, Time now) override;
  void sent(const DatagramTag& tag) override;
  void refused(const DatagramTag& tag, int error) override;

 private:
  ddp::ProtectionContext::Checked check_request(const rdmap::ReadRequest& request) const;
  Verdict add(const rdmap::DatagramSegment& segment, Source& source, size_t datagram_bytes);
  ResponseLane& lane_of(Source& source);
  // Both add at most `most` datagrams, which they count down, and tell whether nothing is left.
  bool fill_lane(ResponseLane& lane, size_t most, DatagramBuilder& builder, Time now);
  bool add_segments(Response& response, size_t& most, DatagramBuilder& builder);
  bool add_segment(Response& response, const ddp::Segment& segment, DatagramBuilder& builder);
  void report(const Response& response, TerminateCode code, Time now);
  void finish(Response& response);

  const ddp::ProtectionContext& protection_;
  const dgram::AddressValidation& validation_;
  ControlSender& control_;
  ErrorReports& errors_;
  const LoggedCounters& counters_;
  const uint32_t max_responses_;
  const uint32_t max_per_source_;
  Waker& waker_;

  // Made with the first request: most queue pairs never have one.
  std::unique_ptr<Pool<Response>> responses_;
  std::unique_ptr<Pool<ResponseLane>> lanes_;
  IntrusiveList<ResponseLane, ResponseTurnTag> turns_;  // those with responses
  size_t lane_count_ = 0;                               // of these
};

}  // namespace diwarp::rnic
