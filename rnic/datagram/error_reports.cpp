// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/error_reports.h"

#include <algorithm>
#include <chrono>

#include "rnic/datagram/control_sender.h"

namespace diwarp::rnic {

namespace {

/// The description of a segment in an entry of the error queue.
DatagramError describe(const Address& peer, const rdmap::DatagramSegment& segment,
                       TerminateCode code) {
  const bool read = segment.opcode == rdmap::Opcode::read_request;
  return {.peer = peer,
          .code = code,
          .opcode = static_cast<uint8_t>(segment.opcode),
          .msn = segment.msn,
          .stag = read ? segment.request.source_stag : segment.stag,
          .tagged_offset = read ? segment.request.source_offset : segment.tagged_offset};
}

}  // namespace

RateLimit::RateLimit(uint32_t rate) : bucket_(rate, rate == 0 ? 0 : std::max(1.0, rate / 10.0)) {}

bool RateLimit::take(Time now) {
  bucket_.refill(now);
  if (bucket_.tokens() < 1) return false;  // guard(errors)
  bucket_.spend(1);
  return true;
}

ErrorReports::ErrorReports(ControlSender& control, const LoggedCounters& counters, uint32_t entries,
                           uint32_t rate)
    : control_(control), counters_(counters), entries_(entries), limit_(rate) {}

void ErrorReports::found(const llp::Destination& from, const rdmap::DatagramSegment& segment,
                         TerminateCode code, size_t datagram_bytes, bool reply, Time now,
                         const std::optional<TerminateCode>& told) {
  add(describe(from.address, segment, code));
  // guard(errors): without reply &&
  // guard(errors): without limit_.take(now) &&
  const bool sent =
      reply && limit_.take(now) &&
      control_.post_error(from, rdmap::report_of(told.value_or(code), segment), datagram_bytes);
  if (sent)
    counters_.add(Counter::errors_sent, from.address, code);
  else
    counters_.add(Counter::errors_suppressed);
}

void ErrorReports::received(const Address& from, const rdmap::ErrorReport& report) {
  const auto segment = rdmap::parse_error_headers(report.headers);
  DatagramError error{.peer = from, .code = report.code};
  if (segment) error = describe(from, *segment, report.code);
  error.reported = true;  // guard(errors)
  add(error);
}

/// False: there was no room.
bool ErrorReports::add(const DatagramError& error) {
  if (!queue_) queue_ = try_make_ring<DatagramError>(entries_);
  if (queue_ && queue_->push_back(error)) return true;
  counters_.add(Counter::error_queue_dropped);
  return false;
}

void ErrorReports::inform(const DatagramError& error) {
  const uint32_t share = std::max(entries_ / 4, 1u);
  // guard(network-reports): condition => false
  if (informing_ >= share) return counters_.add(Counter::error_queue_dropped);
  if (add(error)) ++informing_;
}

std::optional<DatagramError> ErrorReports::poll() {
  if (!queue_ || queue_->empty()) return std::nullopt;
  const DatagramError oldest = queue_->front();
  if (oldest.kind != DatagramErrorKind::protocol) --informing_;
  queue_->pop_front();
  return oldest;
}

}  // namespace diwarp::rnic
