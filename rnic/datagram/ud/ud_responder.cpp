// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_responder.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "dgram/address_validation.h"
#include "rnic/datagram/control_sender.h"
#include "rnic/datagram/error_reports.h"
#include "rnic/datagram/ud/source_table.h"

namespace diwarp::rnic {

namespace {

/// Datagrams of a burst that are shared by the sources that read, where there are several: so few
/// that none waits long for its turn.
constexpr size_t kSharedDatagrams = 64;

/// Bytes of a response's body besides its payload.
const size_t kHeader = rdmap::segment_header_bytes(rdmap::Opcode::read_response, false);

}  // namespace

UdResponder::UdResponder(const ddp::ProtectionContext& protection,
                         const dgram::AddressValidation& validation, ControlSender& control,
                         ErrorReports& errors, const LoggedCounters& counters,
                         const ReadOptions& options, Waker& waker)
    : protection_(protection),
      validation_(validation),
      control_(control),
      errors_(errors),
      counters_(counters),
      max_responses_(options.max_responses),
      max_per_source_(options.max_responses_per_source),
      waker_(waker) {}

UdResponder::~UdResponder() = default;

// --- Taking requests.

Verdict UdResponder::handle(const rdmap::DatagramSegment& segment, Source& source,
                            size_t datagram_bytes, Time now) {
  const bool validated = source.is_validated(now);
  // guard(read-progress): without dgram::Envelope::kOverhead + kHeader +
  const size_t response = dgram::Envelope::kOverhead + kHeader + segment.request.length;
  const bool amplifies = response > datagram_bytes;
  // guard(reads)
  // guard(reads): without amplifies &&
  if (amplifies && !validated) return challenge(source, segment.request, datagram_bytes, now);
  const auto [fault, region] = check_request(segment.request);
  if (fault != ddp::RegionFault::none) return read_verdict(fault);  // guard(reads)
  const bool wants_validation = region != nullptr && has(region->access, Access::validated_source);
  if (!validated && wants_validation)
    return challenge(source, segment.request, datagram_bytes, now);  // guard(guesses)
  return add(segment, source, datagram_bytes);
}

/// A Read of no length reads nothing: its STag and offset are not looked at (RFC 5040 section 5.2).
ddp::ProtectionContext::Checked UdResponder::check_request(
    const rdmap::ReadRequest& request) const {
  if (request.length == 0) return {};  // guard(read-progress)
  // guard(reads): Access::remote_read => Access::none
  return protection_.check_tagged(request.source_stag, Access::remote_read, request.source_offset,
                                  request.length);
}

Verdict UdResponder::challenge(const Source& source, const rdmap::ReadRequest& request,
                               size_t datagram_bytes, Time now) {
  const Address& address = source.key.address;
  // guard(reads): request.sink_offset => 0
  const bool posted =
      control_.post_challenge({address, source.local},
                              {.nonce = request.sink_offset,
                               .cookie = validation_.make(address, source.key.incarnation, now)},
                              datagram_bytes);
  if (!posted) return Verdict::dropped(Counter::drop_no_context);
  counters_.add(Counter::challenges_sent, address);
  return Verdict::accepted();
}

Verdict UdResponder::add(const rdmap::DatagramSegment& segment, Source& source,
                         size_t datagram_bytes) {
  // guard(reads)
  if (source.responses >= max_per_source_) return Verdict::dropped(Counter::drop_share);
  if (!lanes_) {
    auto responses = std::make_unique<Pool<Response>>(max_responses_);
    lanes_ = std::make_unique<Pool<ResponseLane>>(max_responses_);
    responses_ = std::move(responses);
  }
  Response* response = responses_->acquire();
  // guard(reads): => if (response == nullptr) return Verdict::accepted();
  if (response == nullptr) return Verdict::dropped(Counter::drop_no_context);
  response->lane = &lane_of(source);
  response->msn = segment.msn;
  response->nonce = segment.nonce;
  response->request = segment.request;
  response->datagram_bytes = datagram_bytes;
  response->offset = 0;
  response->size_refusals.clear();
  response->lane->responses.push_back(*response);
  set_idle(false);  // guard(reads)
  ++source.responses;
  waker_.wake();
  return Verdict::accepted();
}

/// There are as many lanes as responses, so one is free.
ResponseLane& UdResponder::lane_of(Source& source) {
  if (source.lane == nullptr) {
    source.lane = lanes_->acquire();
    source.lane->source = &source;
    turns_.push_back(*source.lane);
    ++lane_count_;
  }
  return *source.lane;
}

void UdResponder::finish(Response& response) {
  ResponseLane& lane = *response.lane;
  lane.responses.remove(response);
  responses_->release(&response);
  if (--lane.source->responses != 0) return;
  lane.source->lane = nullptr;
  turns_.remove(lane);
  lanes_->release(&lane);
  --lane_count_;
}

void UdResponder::reset() {
  while (ResponseLane* lane = turns_.front())
    while (!lane->responses.empty()) finish(*lane->responses.front());
}

// --- Answering them.

/// Each lane gets its share of a burst, and each is the first to be asked in turn.
void UdResponder::fill(DatagramBuilder& builder, Time now) {
  set_idle(turns_.empty());
  if (turns_.empty()) return;
  turns_.push_back(*turns_.pop_front());  // guard(read-progress)
  const bool shared = lane_count_ != 1;
  const size_t all = DatagramBurst::kMaxDatagrams;
  // guard(read-progress): => const size_t most = shared ? DatagramBurst::kMaxDatagrams : all;
  const size_t most = shared ? std::max<size_t>(kSharedDatagrams / lane_count_, 1) : all;
  bool complete = true;
  ResponseLane* lane = turns_.front();
  while (lane != nullptr && builder.open()) {
    ResponseLane* const next = turns_.next(*lane);
    if (!fill_lane(*lane, most, builder, now)) complete = false;
    lane = next;
  }
  if (!complete || lane != nullptr) builder.close();  // guard(read-progress)
}

bool UdResponder::fill_lane(ResponseLane& lane, size_t most, DatagramBuilder& builder, Time now) {
  Response* response = lane.responses.front();
  while (response != nullptr) {
    if (most == 0 || !builder.open()) return false;
    Response* const next = lane.responses.next(*response);
    // Asked again for each burst: the region may have gone meanwhile.
    const Verdict verdict = read_verdict(check_request(response->request).fault);
    if (verdict.fault) {                       // guard(reads): condition => false
      report(*response, *verdict.fault, now);  // guard(read-progress)
      finish(*response);
    } else if (!add_segments(*response, most, builder)) {
      return false;
    }
    response = next;
  }
  return true;
}

bool UdResponder::add_segments(Response& response, size_t& most, DatagramBuilder& builder) {
  const uint32_t whole = response.request.length;
  const size_t payload =
      ddp::max_payload(builder.max_body(response.lane->source->key.address), kHeader);
  ddp::Segment segment;
  uint64_t offset = response.offset;
  do {
    if (most == 0 || !builder.open()) return false;
    segment = ddp::next_segment(whole, offset, payload);
    if (!add_segment(response, segment, builder)) return false;
    offset = segment.end();
    --most;
  } while (!segment.last);
  return true;
}

bool UdResponder::add_segment(Response& response, const ddp::Segment& segment,
                              DatagramBuilder& builder) {
  const std::span<ConstBytes> pieces = builder.payload_pieces();
  const rdmap::ReadRequest& request = response.request;
  const ddp::Region* const region = protection_.find(request.source_stag);
  // Since it was checked: the next burst tells.
  const bool empty = segment.length == 0;
  const bool is_gone = region == nullptr && !empty;
  if (is_gone) builder.close();
  if (pieces.empty() || is_gone) return false;
  const rdmap::DatagramSegment header = rdmap::response_segment(request, segment);
  const size_t bytes = rdmap::encode_segment_headers(header, builder.header());
  if (!empty) pieces[0] = {region->at(request.source_offset + segment.offset), segment.length};
  const Source& source = *response.lane->source;
  builder.add({source.key.address, source.local}, {.flags = rdmap::flags_of(header)}, bytes,
              empty ? 0 : 1,
              {.source = this, .value = segment.end(), .last = segment.last, .object = &response});
  return true;
}

/// Tells of a fault that was found when the request itself was gone.
void UdResponder::report(const Response& response, TerminateCode code, Time now) {
  rdmap::DatagramSegment segment = rdmap::request_segment(response.msn, response.request);
  segment.nonce = response.nonce;  // guard(reads)
  std::array<std::byte, DatagramBurst::kHeaderBytes> headers;
  segment.headers = ConstBytes(headers).first(rdmap::encode_segment_headers(segment, headers));
  const Source& source = *response.lane->source;
  std::optional<TerminateCode> told;
  if (!source.is_validated(now)) told = concealed_fault(segment.opcode);
  errors_.found({source.key.address, source.local}, segment, code, response.datagram_bytes, true,
                now, told);
}

void UdResponder::sent(const DatagramTag& tag) {
  auto& response = *static_cast<Response*>(tag.object);
  response.offset = static_cast<uint32_t>(tag.value);
  response.size_refusals.clear();
  if (!tag.last) return;
  counters_.add(Counter::reads_served);
  finish(response);
}

/// The path may carry less than it did, which the link knows by now: the rest is cut anew.
void UdResponder::refused(const DatagramTag& tag, int error) {
  auto& response = *static_cast<Response*>(tag.object);
  if (error != EMSGSIZE || !response.size_refusals.may_cut_anew()) finish(response);
}

}  // namespace diwarp::rnic
