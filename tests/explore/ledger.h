// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "diwarp/types.h"
#include "scenario.h"

namespace diwarp::explore {

/// The bytes of an operation's payload: they name it, so that no two have the same.
std::vector<std::byte> contents_of(size_t side, size_t operation, size_t length);

/// The demands of an exploration on RD queue pairs, checked as things happen:
///   - Each message is delivered once, whole and unchanged, and each direction's in the order of
///     posting; at most once where an end restarted.
///   - Success is reported only of what was delivered; a message that the peer refused is not
///     delivered, and one reported lost is not delivered afterwards. Of a Write-Record that fails
///     the target may be told what came of it.
///   - An operation fails only for a reason that it has: memory that is not there (any more), a
///     wrong Q_Key, no room in the receive, an end that restarted, a path that changed.
///   - Completions come in the order of posting; receives are used in the order of posting.
///   - Every request ends.
/// It knows the operations of a scenario; other requests are its user's.
class Ledger {
 public:
  explicit Ledger(const Scenario& scenario);

  // --- What the applications do.

  void posted(size_t side, size_t operation);
  /// An event happened. `reset` and `anew`: the requests of that side that are not over vanish.
  void happened(const Event& event);

  // --- What they are told.

  /// A request of the scenario completed. `read`: what is in the buffer of a Read.
  void completed(size_t side, size_t operation, WcStatus status, ConstBytes read);
  /// A Send came to `side`.
  void received(size_t side, ConstBytes payload);
  /// A Write-Record for this operation of the other side came. `placed`: what is in its memory.
  void recorded(size_t side, size_t operation, bool complete, uint64_t bytes, ConstBytes placed);
  bool restarted(size_t side) const { return restarted_[side]; }
  /// Whether a request may find that the peer began anew.
  bool expects_restart() const { return restarted_[0] || restarted_[1] || path_changed(); }

  /// Whether a request may find that what is before it, either way, does not get through: a
  /// response, say, of a Read that is over. Its association ends with it, and the next request is
  /// free of that.
  bool expects_silence() const { return untold_ || hole_; }

  // --- What comes of it.

  /// All that was posted is over.
  bool all_over() const;
  /// Nothing more will happen.
  void finish();
  /// Whether the queue pair of this side may be in the error state.
  bool expects_error(size_t side) const { return buffer_gone_[side]; }
  /// It is, and has reported all that it will.
  void flushed(size_t side);
  void violation(std::string message) { violations_.push_back(std::move(message)); }
  const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct Entry {
    Operation operation;
    bool posted = false;
    bool vanished = false;
    std::optional<WcStatus> status = {};
    uint32_t deliveries = 0;
    bool delivered_in_part = false;
    bool memory_gone = false;
    bool buffer_gone = false;
  };

  static std::string name(size_t side, size_t operation);
  void deliver(size_t from, size_t operation);
  bool is_too_long(const Operation& operation) const;
  bool must_fail(const Entry& entry) const;
  bool may_fail(size_t side, const Entry& entry, WcStatus status) const;
  bool path_changed() const { return paused_ || narrowed_ || untold_ || hole_; }
  bool may_be_lost(size_t side, const Entry& entry) const;

  const size_t receive_bytes_;
  std::array<std::vector<Entry>, kSides> entries_;
  std::array<std::optional<size_t>, kSides> last_completed_;
  std::array<std::optional<size_t>, kSides> last_delivered_;  // by the side that sent
  std::array<bool, kSides> restarted_{};
  std::array<bool, kSides> buffer_gone_{};
  bool paused_ = false;
  bool narrowed_ = false;
  bool untold_ = false;
  bool hole_ = false;
  std::vector<std::string> violations_;
};

}  // namespace diwarp::explore
