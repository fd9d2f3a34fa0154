// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <system_error>

#include <diwarp/verbs.h>

#include "soak/process.h"

namespace soak {

/// Posts requests and keeps them, with their memory, among those of the process.
class Posting {
 public:
  explicit Posting(Process& process) : process_(process) {}

  /// A request with registered memory; null where there is no place or memory for it.
  Request* prepare(Line& line, uint32_t remote, Operation operation, size_t length,
                   diwarp::Access access);
  /// False where it was not posted; it is released then.
  bool post(Line& line, Request& request, diwarp::SendWorkRequest wr);
  /// As many as the queue has room for.
  void post_receives(Line& line);
  /// Whether a request that is right may be refused so.
  bool refusal_allowed(const std::error_code& error) const;

 private:
  Process& process_;
};

/// The length of an operation: mostly short, at times up to `most`.
size_t pick_size(diwarp::Random& random, size_t most);

}  // namespace soak
