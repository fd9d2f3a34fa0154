// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "dgram/envelope.h"
#include "dgram/identity.h"
#include "llp/datagram_link.h"
#include "rdmap/datagram.h"
#include "rnic/datagram/pacer.h"
#include "rnic/engine/datagram_burst.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The parts of a message's segments that are the same in all of them.
inline rdmap::DatagramSegment header_of(const SendEntry& entry, uint32_t msn) {
  rdmap::DatagramSegment segment;
  segment.opcode = opcode_of(entry);
  segment.record_solicited =
      rdmap::is_record(entry.opcode) && has(entry.flags, SendFlags::solicited);
  if (const uint64_t* immediate = entry.immediate()) {
    segment.has_immediate = true;
    segment.immediate = *immediate;
  }
  segment.q_key = entry.q_key;
  segment.invalidate_stag = entry.invalidate_stag;
  segment.msn = msn;
  segment.stag = entry.remote.stag;
  segment.message_length = static_cast<uint32_t>(entry.length);
  return segment;
}

/// The view of a source of datagrams on a burst that is being filled.
class DatagramBuilder {
 public:
  DatagramBuilder(DatagramBurst& burst, llp::DatagramLink& link, Pacer& pacer,
                  dgram::Identity& identity, uint32_t segment)
      : burst_(burst), link_(link), pacer_(pacer), identity_(identity), segment_(segment) {}

  /// Whether another datagram may be added: the burst has a place, and the pacer lets it.
  bool open() const { return !closed_ && !burst_.full() && pacer_.may_send(); }
  /// Ends this burst, and asks for another: the next datagram does not fit, or has to wait until
  /// those in this one are sent.
  void close() { closed_ = true; }
  bool closed() const { return closed_; }
  /// The longest body of a datagram to `to` that the path, and the application's choice, allow.
  size_t max_body(const Address& to) {
    const size_t path = link_.max_datagram(to);
    return dgram::Envelope::max_body(segment_ == 0 ? path : std::min<size_t>(segment_, path));
  }
  size_t size() const { return burst_.size(); }
  DatagramBurst::SourceData* source_data() { return burst_.source_data(); }

  /// Room for the beginning of the next datagram's body: headers, or all of it.
  Bytes header() { return burst_.header().subspan(dgram::Envelope::kPrefixBytes); }
  std::span<ConstBytes> payload_pieces() { return burst_.payload_pieces(); }
  /// The labels of a datagram in its prefix, besides the incarnation that its destination is shown.
  struct Kind {
    dgram::DatagramClass datagram_class = dgram::DatagramClass::unreliable;
    uint8_t flags = 0;
  };
  /// Adds the datagram with `header_bytes` in header() and so many payload_pieces(), and seals it.
  void add(const llp::Destination& to, const Kind& kind, size_t header_bytes, size_t payload_pieces,
           const DatagramTag& tag) {
    const size_t headers = dgram::Envelope::kPrefixBytes + header_bytes;
    std::span<ConstBytes> payload = burst_.payload_pieces().first(payload_pieces);
    const size_t front = burst_.join_payload(headers, payload);
    if (front != headers) payload = {};
    const size_t bytes =
        burst_.sealer().seal({kind.datagram_class, kind.flags, identity_.incarnation(to.address)},
                             burst_.header().first(front), payload, burst_.trailer(front));
    burst_.add(to, front, payload.size(), bytes, tag);
    pacer_.spend(bytes);
  }

 private:
  DatagramBurst& burst_;
  llp::DatagramLink& link_;
  Pacer& pacer_;
  dgram::Identity& identity_;
  const uint32_t segment_;
  bool closed_ = false;
};

}  // namespace diwarp::rnic
