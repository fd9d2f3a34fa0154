// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/interval_set.h"
#include "rnic/datagram/ud/ud_reader.h"

namespace diwarp::rnic {

/// What one request asks for.
struct UdReader::Part : ListNode<PartTag>, ListNode<UnsentTag> {
  Read* read = nullptr;
  Part* next_in_chain = nullptr;
  STag sink = 0;
  uint64_t sink_offset = 0;  // of the part's first byte in its sink
  uint32_t nonce = 0;        // that an Error must repeat
  uint32_t msn = 0;
  uint64_t begin = 0;  // of the Read's bytes
  uint32_t length = 0;
  uint32_t missing = 0;     // bytes of these
  bool behind = false;      // nothing more is expected
  bool asked = false;       // the request was sent
  bool answerable = false;  // since then nothing came, not even a Challenge
  uint64_t asked_as = 0;    // counts requests
  uint32_t challenges = 0;
  std::optional<dgram::Challenge> echo;  // to be sent before the request
};

struct UdReader::Read : ListNode<ReadTag> {
  Read(uint32_t window, size_t max_ranges)
      : storage(std::make_unique<Part[]>(size_t{2} * window)), valid(max_ranges) {
    for (Part& part : std::span(storage.get(), size_t{2} * window)) {
      part.read = this;
      spare.push_back(part);
    }
  }

  SendEntry* entry = nullptr;
  Duration timeout{};
  Time deadline{};
  uint32_t retries_left = 0;
  bool retrying = false;
  Time last_sign{};  // that the target is at work for it: new bytes, or those of an earlier Read
  Time last_try{};   // when it was asked for from the start
  Time last_nudge{};
  uint64_t scanned = 0;     // up to there was asked for, this time round
  uint32_t open_parts = 0;  // that are not behind
  // As many may be behind as the window has.
  std::unique_ptr<Part[]> storage;
  IntrusiveList<Part, PartTag> parts;  // those asked for, in this order
  IntrusiveList<Part, PartTag> spare;
  IntervalSet valid;
};

}  // namespace diwarp::rnic
