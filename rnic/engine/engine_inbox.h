// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>

#include "base/mpsc_list.h"
#include "rnic/engine/transmit_source.h"

namespace diwarp::rnic {

/// What any thread leaves for a holder of an engine's baton: sources that have something to send,
/// and that stalled ones may go on.
///
/// A thread adds a source, then tries the baton; a holder releases it, then looks for sources. So
/// one of them sees the other.
class EngineInbox {
 public:
  // --- Any thread.

  void add(TransmitSource& source) {
    if (!source.notified_.exchange(true)) sources_.push(source);
  }
  void unstall() { unstall_.store(true); }

  bool has_sources() const { return !sources_.empty(); }
  bool empty() const { return !unstall_.load() && sources_.empty(); }

  // --- With the baton.

  /// Whether stalled sources may go on since the last call.
  bool take_unstall() {
    return unstall_.load(std::memory_order_relaxed) && unstall_.exchange(false);
  }
  /// Calls `visit(TransmitSource&)` for each source, which may be added again from then on. Returns
  /// how many there were.
  template <class Visit>
  size_t take_sources(Visit visit) {
    return sources_.drain([&](MpscNode& node) {
      auto& source = static_cast<TransmitSource&>(node);
      source.notified_.store(false);
      visit(source);
    });
  }

 private:
  MpscList sources_;
  std::atomic<bool> unstall_{false};
};

}  // namespace diwarp::rnic
