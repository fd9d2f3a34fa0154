// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "diwarp/types.h"

namespace diwarp::fuzz {

/// The requests that one queue has taken and that have not completed, oldest first. Ends the
/// program where a completion comes twice, for nothing, out of order, or says what cannot be.
class RequestLedger {
 public:
  /// `name` stands in the messages about violations.
  explicit RequestLedger(const char* name) : name_(name) {}

  struct Request {
    uint64_t wr_id = 0;
    WcOpcode opcode = WcOpcode::send;
    bool silent = false;  ///< completes only if it fails
    uint64_t room = 0;    ///< of a receive, or a Read: bytes
    size_t at = 0;        ///< where in its memory these begin
  };

  void posted(const Request& request) { open_.push_back(request); }
  /// Returns the request. Silent ones before it have succeeded.
  Request completed(const WorkCompletion& completion);
  /// The same of a queue whose requests need not complete in order.
  Request completed_anywhere(const WorkCompletion& completion);
  /// The queue was emptied without completions.
  void dropped() { open_.clear(); }
  /// Nothing may be open any more but what has succeeded silently.
  void check_all_completed() const;
  bool empty() const { return open_.empty(); }
  size_t size() const { return open_.size(); }

 private:
  [[noreturn]] void violated(const char* what, uint64_t wr_id) const;
  void check(const Request& request, const WorkCompletion& completion) const;

  const char* name_;
  std::deque<Request> open_;
};

}  // namespace diwarp::fuzz
