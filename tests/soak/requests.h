// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "soak/arena.h"

namespace soak {

enum class Operation : uint8_t {
  receive,
  send,
  send_invalidate,
  tell,  ///< RC: a Send after a Write, which names it
  immediate,
  write,
  write_record,
  read,
  fetch_add,
  compare_swap,
  swap,
  bind_window,  ///< local: the offer's window is for the peer from its completion on
};
std::string_view to_string(Operation operation);

/// The fault of an operation that must be refused.
enum class Wrong : uint8_t { nothing, stag, bounds, length };

/// A work request that is posted.
struct Request {
  Operation operation = Operation::receive;
  Wrong wrong = Wrong::nothing;
  bool withdrawn = false;    ///< its memory was deregistered since
  bool passed_over = false;  ///< RD: the peer has delivered a later message, but not this one
  uint32_t line = 0;         ///< the queue pair's place
  uint32_t remote = 0;       ///< the peer's index
  uint32_t remote_life = 0;
  uint64_t number = 0;  ///< of a Send to that peer; of the operation
  uint64_t offer = 0;   ///< whose memory it names
  uint32_t offer_life = 0;
  uint64_t at = 0;     ///< in the offer
  uint64_t value = 0;  ///< atomics: the bytes before
  double posted = 0;   ///< of the peer's clock, seconds
  Buffer buffer = {};
  uint64_t id = 0;  ///< wr_id; 0: the place is free
};

/// The requests that are posted, in places of which there is a fixed number.
class Requests {
 public:
  static constexpr size_t kMost = 4096;

  Requests() : places_(kMost) {
    for (uint32_t i = 0; i < kMost; ++i) free_.push_back(i);
  }

  /// A new request, or null where there is no place.
  Request* add();
  /// The request with this wr_id; null if there is none.
  Request* find(uint64_t id);
  void release(Request& request);
  /// The queue pair reports nothing of it any more.
  void drop(Request& request);
  /// Whether it is one of the requests that were dropped last.
  bool was_dropped(uint64_t id) const;

  std::vector<Request>& places() { return places_; }
  size_t posted() const { return places_.size() - free_.size(); }

 private:
  std::vector<Request> places_;
  std::vector<uint32_t> free_;
  std::deque<uint64_t> dropped_;
  uint64_t next_ = 1;
};

}  // namespace soak
