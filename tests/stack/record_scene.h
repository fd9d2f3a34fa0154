// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stack/ud_scene.h"

/// The common part of the tests of Write-Record.
namespace diwarp::test {

inline constexpr Access kWritable = Access::local_write | Access::remote_write;
/// Tagged offset of the first byte of the regions in these tests: nobody's address.
inline constexpr uint64_t kBase = 0x7000'0000'0000;

using Range = ValidityMap::Range;
using Ranges = std::vector<Range>;

inline Ranges ranges_of(const ValidityMap& map) {
  return {map.ranges().begin(), map.ranges().end()};
}

/// What of a message's contents a region holds that had `before` in the message's place: the bytes
/// that the map names, and nothing else has changed.
inline bool holds_exactly(const ValidityMap& map, std::span<const std::byte> memory,
                          std::span<const std::byte> contents, std::span<const std::byte> before) {
  for (auto [offset, length] : map.ranges())
    if (!same(memory.subspan(offset, length), contents.subspan(offset, length))) return false;
  for (auto [offset, length] : map.gaps())
    if (!same(memory.subspan(offset, length), before.subspan(offset, length))) return false;
  return true;
}

/// The fields of a datagram of a Write-Record without immediate data.
inline uint32_t record_msn_of(std::span<const std::byte> datagram) {
  return read_be32(datagram, 22);
}
inline uint32_t record_offset_of(std::span<const std::byte> datagram) {
  return read_be32(datagram, 26);
}
inline size_t record_payload_of(std::span<const std::byte> datagram) {
  return datagram.size() - kRecordOverhead;
}

/// A target with memory that peers may write, and a stranger who sends it segments.
struct RecordScene : Scene {
  explicit RecordScene(const PartyOptions& options = {})
      : Scene(options), region(target.pd, std::span(target.memory), kWritable, kBase) {
    target.fill(pattern(target.memory.size(), 0xEE));
    before = target.memory;
  }

  /// The contents of a message of these tests.
  static std::vector<std::byte> contents(uint32_t msn, uint32_t length) {
    return pattern(length, (uint64_t{1} << 32) + msn);
  }

  /// A segment of message `msn` of `length` bytes, which goes to `at` in the region.
  Segment part(uint32_t msn, uint32_t offset, uint32_t size, uint32_t length,
               uint64_t at = 0) const {
    const auto all = contents(msn, length);
    const auto begin = all.begin() + static_cast<ptrdiff_t>(offset);
    return {.msn = msn,
            .offset = offset,
            .last = offset + size == length,
            .payload = {begin, begin + static_cast<ptrdiff_t>(size)},
            .opcode = kWriteRecord,
            .stag = region.rkey(),
            .tagged_offset = kBase + at + offset,
            .message_length = length};
  }
  Segment whole(uint32_t msn, uint32_t length, uint64_t at = 0) const {
    return part(msn, 0, length, length, at);
  }

  using Scene::send;
  void send(const Segment& segment) { send(stranger, segment); }

  /// The records that were reported, each with its bytes where the map says so and nothing else
  /// touched, as long as messages do not overlap.
  std::vector<WorkCompletion> records() {
    const auto all = drain(target.recv_cq);
    for (const WorkCompletion& record : all) {
      CHECK(record.status == WcStatus::success);
      CHECK(record.opcode == WcOpcode::recv_write_record);
      CHECK(record.wr_id == 0);
      CHECK(record.qp_number == target.qp.number());
      CHECK(record.valid_bytes == record.validity.valid_bytes());
    }
    return all;
  }
  bool is_placed(const WorkCompletion& record, uint32_t msn) const {
    return is_placed(record.validity, record.tagged_offset, msn);
  }
  bool is_placed(const ValidityMap& map, uint64_t tagged_offset, uint32_t msn) const {
    const size_t at = tagged_offset - kBase;
    const auto length = static_cast<uint32_t>(map.length());
    return holds_exactly(map, std::span(target.memory).subspan(at, length), contents(msn, length),
                         std::span(before).subspan(at, length));
  }
  bool is_untouched() const { return target.memory == before; }

  MemoryRegion region;
  std::vector<std::byte> before;
};

}  // namespace diwarp::test
