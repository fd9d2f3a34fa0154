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
#include "rnic/work_queue.h"

namespace diwarp::rnic {

struct SourceAgeTag;
struct OpenOfSourceTag;
struct OpenAgeTag;

struct Source;

/// A message of several segments that is not whole yet.
struct OpenMessage : ListNode<OpenOfSourceTag>, ListNode<OpenAgeTag> {
  Source* source = nullptr;
  uint32_t msn = 0;
  bool solicited = false;
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
  ddp::ClosedMessages closed;
  Time last_heard{};
  uint32_t open_count = 0;
  IntrusiveList<OpenMessage, OpenOfSourceTag> open;
};

/// The sources a UD queue pair remembers, so that nothing is delivered twice. Bounded: a new source
/// takes the place of the one that was silent longest.
class SourceTable {
 public:
  /// A source that was silent for so long is forgotten in any case.
  static constexpr Duration kForgetAfter = std::chrono::seconds(60);

  explicit SourceTable(size_t max_sources) : max_sources_(max_sources) {}

  /// The source, made if it is new; null if the table is full of sources with open messages.
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
