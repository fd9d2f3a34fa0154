// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rd_parts.h"
#include "rnic/datagram/control_sender.h"
#include "rnic/datagram/error_reports.h"
#include "rnic/datagram/rd/rd_delivery.h"
#include "rnic/datagram/rd/rd_responder.h"
#include "rnic/datagram/record_table.h"
#include "support/catch.h"

/// The receiving half of an RD queue pair, for tests of its parts.
namespace diwarp::rnic::parts {

inline constexpr uint32_t kQKey = 0x51;

/// Few of everything that is limited.
inline provider::QueuePairInit rd_init(RecordCompletion policy = RecordCompletion::complete) {
  provider::QueuePairInit all;
  all.type = QpType::rd;
  all.datagram.q_key = kQKey;
  all.datagram.record_completion = policy;
  all.datagram.max_open_records = 2;
  all.datagram.stag_misses_per_source = 2;
  return all;
}

/// A segment of a Send.
inline rdmap::DatagramSegment send(uint32_t msn, uint32_t offset, std::string_view text,
                                   bool last) {
  rdmap::DatagramSegment segment;
  segment.q_key = kQKey;
  segment.msn = msn;
  segment.message_offset = offset;
  segment.payload = bytes_of(text);
  segment.last = last;
  return segment;
}
inline rdmap::DatagramSegment whole(uint32_t msn, std::string_view text) {
  return send(msn, 0, text, true);
}

/// What follows the RD header of a segment's datagram.
inline std::vector<std::byte> body_of(const rdmap::DatagramSegment& segment) {
  std::vector<std::byte> bytes(DatagramBurst::kHeaderBytes);
  bytes.resize(rdmap::encode_segment_headers(segment, bytes));
  bytes.insert(bytes.end(), segment.payload.begin(), segment.payload.end());
  return bytes;
}

/// The delivery of what peers send, and all that it needs.
struct Receiving : Memory {
  explicit Receiving(const provider::QueuePairInit& chosen = rd_init(), uint32_t entries = 64)
      : receives(16, entries),
        peers(receives.buffers.shares(), chosen),
        records({protection, receives.buffers, receives.cq, counters}, chosen.datagram, false),
        delivery(receives.buffers, protection, peers.table, records, requests, responder, errors,
                 logged, chosen.datagram) {
    requests.set_first_msn(1);
  }

  void post(uint64_t wr_id, size_t offset, size_t length) {
    REQUIRE_FALSE(receives.post(wr_id, sge(region, offset, length)));
  }
  rdmap::DatagramSegment record(uint32_t msn, uint32_t length, uint32_t offset,
                                std::string_view text) {
    rdmap::DatagramSegment segment;
    segment.opcode = rdmap::Opcode::write_record;
    segment.msn = msn;
    segment.message_length = length;
    segment.message_offset = offset;
    segment.stag = region;
    segment.tagged_offset = 100 + offset;
    segment.payload = bytes_of(text);
    segment.last = offset + text.size() == length;
    return segment;
  }
  std::vector<WorkCompletion> reported() {
    std::vector<WorkCompletion> all = receives.reported();
    records.report(receives.cq);
    for (WorkCompletion& one : receives.poll()) all.push_back(std::move(one));
    return all;
  }

  Time now = kNow;
  Counters counters;
  LoggedCounters logged{counters};
  Receives receives;
  Sends sends;
  STag region = add(0, Canvas::kSize);
  Peers peers;
  RecordTable records;
  RdRequests requests{protection, sends.queue, ErrorScope::peer};
  RdResponder responder{protection, counters};
  CountingWaker control_waker;
  ControlSender control{control_waker};
  ErrorReports errors{control, logged, 8, 1000};
  RdPeer& peer = peers.add("10.0.0.1");
  RdDelivery delivery;
};

}  // namespace diwarp::rnic::parts
