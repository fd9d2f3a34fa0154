// SPDX-License-Identifier: Apache-2.0
#include <bitset>
#include <optional>
#include <set>
#include <utility>

#include "base/interval_set.h"
#include "base/validity_pool.h"
#include "ddp/closed_messages.h"
#include "ddp/reassembly.h"
#include "ddp/record.h"
#include "fuzz/input.h"

/// The memory of the bytes and the messages that have come, each against the plainest model
/// of it: a bit for each byte, a set of all numbers.

using namespace diwarp;
using namespace diwarp::fuzz;

namespace {

constexpr size_t kBytes = 256;
using Bits = std::bitset<kBytes>;

/// Some bytes of those that a model has a bit for.
struct Part {
  uint32_t begin;
  uint32_t end;

  bool empty() const { return begin == end; }
  bool all_in(const Bits& bits) const { return count_in(bits) == end - begin; }
  bool none_in(const Bits& bits) const { return count_in(bits) == 0; }
  size_t count_in(const Bits& bits) const {
    size_t count = 0;
    for (uint32_t i = begin; i < end; ++i) count += bits[i];
    return count;
  }
  void add_to(Bits& bits) const {
    for (uint32_t i = begin; i < end; ++i) bits.set(i);
  }
};

/// Some part of the first `limit` bytes.
Part any_part(Input& input, uint32_t limit) {
  const uint32_t a = input.u8() % (limit + 1);
  const uint32_t b = input.u8() % (limit + 1);
  return {std::min(a, b), std::max(a, b)};
}

// --- IntervalSet.

void check_insert(InsertResult result, const Part& part, const Bits& before) {
  if (part.empty()) return;
  switch (result) {
    case InsertResult::added:
      return require(part.none_in(before), "Some of it was there");
    case InsertResult::duplicate:
      return require(part.all_in(before), "Not all of it was there");
    case InsertResult::partial:
      return require(!part.none_in(before) && !part.all_in(before),
                     "It was there as a whole, or not at all");
    case InsertResult::full:
      return;
  }
}

void check_ranges(const IntervalSet& set, const Bits& bits) {
  require(set.covered() == bits.count(), "Another number of bytes is there");
  require(set.size() <= set.max_ranges(), "There are too many ranges");
  std::optional<uint64_t> last;
  for (const IntervalSet::Range& range : set) {
    require(range.begin < range.end && (!last || range.begin > *last), "Ranges touch or are empty");
    const Part part{static_cast<uint32_t>(range.begin), static_cast<uint32_t>(range.end)};
    require(part.all_in(bits), "A range has bytes that never came");
    last = range.end;
  }
}

void check_gap(const IntervalSet& set, const Bits& bits, size_t from) {
  size_t begin = from;
  while (begin < kBytes && bits[begin]) ++begin;
  size_t end = begin;
  while (end < kBytes && !bits[end]) ++end;
  require(set.first_gap(from, kBytes) == std::pair<uint64_t, uint64_t>(begin, end),
          "The first gap is another");
}

void fuzz_intervals(Input& input) {
  IntervalSet set(1 + input.u8() % 9);
  Bits bits;
  while (input.more()) {
    const Part part = any_part(input, kBytes - 1);
    const InsertResult result = set.insert(part.begin, part.end);
    check_insert(result, part, bits);
    if (result != InsertResult::full) part.add_to(bits);
    check_ranges(set, bits);
    check_gap(set, bits, input.u8());
    require(set.contains(part.begin, part.end) == part.all_in(bits), "contains() is wrong");
  }
}

// --- ClosedMessages.

/// Numbers near each other, leaps within a quarter of the circle, and leaps of a quarter.
uint32_t any_msn(Input& input, uint32_t base) {
  const uint8_t shape = input.u8();
  const uint32_t near = base + (shape & 31);
  if ((shape & 128) != 0) return base + (input.u32() >> 2);
  return (shape & 64) != 0 ? near + 0x1000u * (input.u8() & 63) : near;
}

/// An accepted message counts as closed for ever. A refused one is remembered within a bound, and
/// closes no other.
void fuzz_closed_messages(Input& input) {
  const size_t limit = 1 + input.u8() % 8;
  const size_t refused_limit = 1 + input.u8() % 4;
  ddp::ClosedMessages closed(limit, refused_limit);
  std::set<uint32_t> accepted;
  const uint32_t base = input.u32();
  while (input.more()) {
    const bool refuse = input.flag();
    const uint32_t msn = any_msn(input, base);
    const bool before = closed.contains(msn);
    if (!refuse) {
      const bool fresh = closed.close(msn);
      require(fresh || before, "A message that never came was closed before");
      require(!fresh || !accepted.contains(msn), "A message is closed twice");
      accepted.insert(msn);
    } else if (!before) {
      const size_t remembered = closed.remembered();
      closed.refuse(msn, input.flag());
      require(closed.remembered() == remembered, "A refused message counts as accepted");
    }
    if (!refuse) require(closed.contains(msn), "A message that was closed is open");
    require(closed.remembered() <= limit, "Too many accepted messages are remembered");
    require(closed.refused_runs() <= refused_limit, "Too many refused messages are remembered");
    for (const uint32_t each : accepted)
      require(closed.contains(each), "An accepted message was forgotten");
  }
}

/// Without any accepted message nothing but what was refused is closed.
void fuzz_refused_messages(Input& input) {
  ddp::ClosedMessages closed(1 + input.u8() % 8, 1 + input.u8() % 4);
  std::set<uint32_t> refused;
  const uint32_t base = input.u32();
  while (input.more()) {
    const uint32_t msn = any_msn(input, base);
    require(!closed.contains(msn) || refused.contains(msn), "A message that never came is closed");
    if (closed.contains(msn)) continue;
    closed.refuse(msn, input.flag());
    refused.insert(msn);
  }
}

// --- Messages in parts.

Bits bits_of(const ValidityMap& map) {
  Bits bits;
  for (const auto& range : map.ranges())
    for (uint64_t i = range.offset; i < range.offset + range.length; ++i)
      bits.set(static_cast<size_t>(i));
  return bits;
}

void fuzz_record(Input& input) {
  constexpr uint32_t kLength = 250;
  const size_t maps = input.u8() % 3;
  const auto pool = ValidityPool::create(maps, 1 + input.u8() % 7);
  ddp::Record record;
  record.open({.length = kLength});
  Bits bits;
  while (input.more()) {
    const Part part = any_part(input, kLength);
    const auto fault = record.add(part.begin, part.end - part.begin, part.end == kLength, *pool);
    if (fault == ddp::SegmentFault::none) {
      require(part.none_in(bits), "A record takes bytes twice");
      part.add_to(bits);
    } else if (!part.empty() && part.none_in(bits)) {
      require(fault == ddp::SegmentFault::range_limit, "A record refuses new bytes");
    }
    require(record.valid_bytes() == bits.count(), "A record has another number of bytes");
    require(record.complete() == (bits.count() == kLength),
            "A record is complete too early or too late");
  }
  require(bits_of(record.copy_map()) == bits, "The copy of a validity map is another");
  require(bits_of(record.take_map()) == bits, "A validity map is another");
}

void fuzz_reassembly(Input& input) {
  constexpr uint32_t kCapacity = 200;
  ddp::Reassembly message;
  message.open(kCapacity);
  Bits bits;
  std::optional<uint64_t> end;
  while (input.more() && !message.complete()) {
    const Part part = any_part(input, kBytes - 1);
    const bool last = input.u8() % 5 == 0;
    if (message.add(part.begin, part.end - part.begin, last) != ddp::SegmentFault::none) continue;
    require(part.end <= kCapacity, "A segment reaches beyond the receive");
    require(part.none_in(bits), "A message takes bytes twice");
    part.add_to(bits);
    if (last) {
      require(!end || *end == part.end, "A message has two ends");
      end = part.end;
    }
    require(message.placed() == bits.count(), "A message has another number of bytes");
    const bool complete = end && bits.count() == *end;
    require(message.complete() == complete, "A message is complete too early or too late");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  switch (input.u8() % 5) {
    case 0:
      fuzz_intervals(input);
      break;
    case 1:
      fuzz_closed_messages(input);
      break;
    case 2:
      fuzz_refused_messages(input);
      break;
    case 3:
      fuzz_record(input);
      break;
    default:
      fuzz_reassembly(input);
  }
  return 0;
}
