// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace diwarp::compat {

/// Where the latest message of each UD queue pair came from, among those that were polled from a
/// completion queue.
class LastSources {
 public:
  /// One thread at a time.
  void note(uint32_t queue_pair, const Address& source) {
    if (queue_pair == latest_queue_pair_ && source == latest_source_) return;
    latest_queue_pair_ = queue_pair;
    latest_source_ = source;
    const std::lock_guard lock(mutex_);
    sources_[queue_pair] = source;
  }
  /// Any thread: also the one that polls, between ibv_start_poll() and ibv_end_poll().
  std::optional<Address> find(uint32_t queue_pair) const {
    const std::lock_guard lock(mutex_);
    const auto found = sources_.find(queue_pair);
    if (found == sources_.end()) return std::nullopt;
    return found->second;
  }

 private:
  // The same one comes again and again: it is compared, and not looked up.
  uint32_t latest_queue_pair_ = 0;
  Address latest_source_;
  mutable std::mutex mutex_;                       // guards what follows
  std::unordered_map<uint32_t, Address> sources_;  // at most an entry for each UDP port
};

}  // namespace diwarp::compat
