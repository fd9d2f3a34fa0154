// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/intrusive_list.h"
#include "ddp/closed_messages.h"
#include "ddp/reassembly.h"
#include "diwarp/address.h"
#include "rdmap/datagram.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

struct SourceAgeTag;
struct OpenOfSourceTag;
struct RecordOfSourceTag;
struct OpenAgeTag;

struct Record;
struct ResponseLane;
struct Source;

/// What the segments of a Send have in common.
struct MessageFacts {
  rdmap::Opcode opcode = rdmap::Opcode::send;
  bool has_immediate = false;
  uint64_t immediate = 0;
  STag invalidate_stag = 0;
  friend bool operator==(const MessageFacts&, const MessageFacts&) = default;

  static MessageFacts of(const rdmap::DatagramSegment& segment) {
    return {segment.opcode, segment.has_immediate, segment.immediate, segment.invalidate_stag};
  }
};

/// A message of several segments that is not whole yet.
struct OpenMessage : ListNode<OpenOfSourceTag>, ListNode<OpenAgeTag> {
  Source* source = nullptr;
  uint32_t msn = 0;
  MessageFacts facts;
  ReceiveEntry* receive = nullptr;
  ddp::Reassembly reassembly;
  Time last_progress{};
};

struct SourceKey {
  Address address;
  uint32_t incarnation = 0;
  friend bool operator==(const SourceKey&, const SourceKey&) = default;
};

struct SourceKeyHash {
  size_t operator()(const SourceKey& key) const noexcept {
    return std::hash<Address>()(key.address) ^ (size_t{key.incarnation} * 0x9e3779b97f4a7c15U);
  }
};

/// One peer queue pair that has sent something: address, port and incarnation.
struct Source : ListNode<SourceAgeTag> {
  SourceKey key;
  ddp::ClosedMessages closed;          // Sends
  ddp::ClosedMessages closed_records;  // Write-Records: their MSNs are a space of their own
  Time last_heard{};
  Time validated_until{};  // it has shown that it is where it says
  uint32_t open_count = 0;
  uint32_t open_records = 0;
  uint32_t responses = 0;  // Read Requests that wait to be answered
  ResponseLane* lane = nullptr;  // the responder's, while there are some
  IntrusiveList<OpenMessage, OpenOfSourceTag> open;
  IntrusiveList<Record, RecordOfSourceTag> records;

  /// Something refers to it: it must not be forgotten.
  bool in_use() const { return open_count != 0 || open_records != 0 || responses != 0; }
};

/// The sources a UD queue pair remembers, so that nothing is delivered twice. Bounded: a new source
/// takes the place of the one that was silent longest.
class SourceTable {
 public:
  /// A source that was silent for so long is forgotten in any case.
  static constexpr Duration kForgetAfter = std::chrono::seconds(60);

  explicit SourceTable(size_t max_sources) : max_sources_(max_sources) {}

  /// The source, made if it is new; null if the table is full of sources in use.
  Source* find_or_add(const Address& address, uint32_t incarnation, Time now);
  void clear();
  size_t size() const { return sources_.size(); }

 private:
  void forget_silent(Time now);
  bool forget_oldest();
  void forget(Source& source);

  const size_t max_sources_;
  std::unordered_map<SourceKey, std::unique_ptr<Source>, SourceKeyHash> sources_;
  IntrusiveList<Source, SourceAgeTag> by_age_;  // longest silent first
  Source* latest_ = nullptr;                    // of the last datagram: most come in trains
};

}  // namespace diwarp::rnic
