// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/clock.h"
#include "base/interval_set.h"
#include "base/intrusive_list.h"
#include "dgram/control.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

struct UdRead;
struct UdReadTag;
struct UdPartTag;
struct UdUnsentTag;

/// The bytes that one request of a Read over UD asks for.
///
/// A part is closed when nothing more is expected of it: its last segment came, or something of a
/// part that was asked for later, or nothing came for a while. The missing bytes may still come,
/// but they hold up the other parts no longer. So Reads go on where a request, or the end of a
/// response, was lost.
struct UdReadPart : ListNode<UdPartTag>, ListNode<UdUnsentTag> {
  UdRead* read = nullptr;
  UdReadPart* next_in_chain = nullptr;
  STag sink = 0;
  uint64_t sink_offset = 0;  // of the part's first byte in its sink
  uint32_t nonce = 0;        // that an Error must repeat
  uint32_t msn = 0;
  uint64_t begin = 0;  // of the Read's bytes
  uint32_t length = 0;
  uint32_t missing = 0;     // bytes of these
  bool closed = false;      // nothing more is expected
  bool asked = false;       // the request was sent
  bool answerable = false;  // since then nothing came, not even a Challenge
  uint64_t asked_as = 0;    // counts requests
  uint32_t challenges = 0;
  std::optional<dgram::Challenge> echo;  // to be sent before the request

  void close();
};

/// A Read over UD that is under way. It owns its parts and its map of valid bytes; UdReads owns it.
struct UdRead : ListNode<UdReadTag> {
  /// Parts are closed when nothing came for the timeout divided by this.
  static constexpr int kNudgesPerTimeout = 4;

  UdRead(uint32_t window, size_t max_ranges)
      : storage(std::make_unique<UdReadPart[]>(size_t{2} * window)), valid(max_ranges) {
    for (UdReadPart& part : std::span(storage.get(), size_t{2} * window)) {
      part.read = this;
      spare.push_back(part);
    }
  }

  /// Whether bytes are missing after those that were asked for.
  bool has_more() const { return valid.first_gap(scanned, entry->length).first != entry->length; }
  Time nudge_due() const { return std::max(last_sign, last_nudge) + timeout / kNudgesPerTimeout; }

  SendEntry* entry = nullptr;
  Duration timeout{};
  Time deadline{};
  uint32_t retries_left = 0;
  bool retrying = false;
  Time last_sign{};  // that the target is at work for it: new bytes, or those of an earlier Read
  Time last_try{};   // when it was asked for from the start
  Time last_nudge{};
  uint64_t scanned = 0;     // up to there was asked for, this time round
  uint32_t open_parts = 0;  // that are not closed
  // As many may be closed as the window has.
  std::unique_ptr<UdReadPart[]> storage;
  IntrusiveList<UdReadPart, UdPartTag> parts;  // those asked for, in this order
  IntrusiveList<UdReadPart, UdPartTag> spare;
  IntervalSet valid;
};

inline void UdReadPart::close() {
  if (closed) return;
  closed = true;
  --read->open_parts;
}

}  // namespace diwarp::rnic
