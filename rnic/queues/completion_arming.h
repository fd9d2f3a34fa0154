// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace diwarp::rnic {

/// A completion queue's wish for one event, at the first completion that is pushed from then on.
///
/// The producer pushes first and asks afterwards, so it may ask late: when the consumer has polled
/// that completion already and armed the queue anew. Hence the wish names the completion that it
/// begins with, and an earlier one does not use it up.
class CompletionArming {
 public:
  /// `pushed`: the completions pushed so far.
  void arm(uint64_t pushed, bool solicited_only) {
    wish_.store((pushed << 2) | (solicited_only ? kSolicited : kAny));
  }

  bool armed() const { return wish_.load() != kNone; }

  /// The completion number `index`, counted from 0, was pushed. True if an event is due, which uses
  /// up the wish.
  bool take(uint64_t index, bool solicited) {
    uint64_t wish = wish_.load();
    if (wish == kNone || index < wish >> 2) return false;          // guard(completion)
    if ((wish & kKind) == kSolicited && !solicited) return false;  // guard(completion)
    return wish_.compare_exchange_strong(wish, kNone);
  }

 private:
  static constexpr uint64_t kNone = 0;
  static constexpr uint64_t kSolicited = 1;
  static constexpr uint64_t kAny = 2;
  static constexpr uint64_t kKind = 3;  // the bits of the kind; the count stands above them

  std::atomic<uint64_t> wish_{kNone};
};

}  // namespace diwarp::rnic
