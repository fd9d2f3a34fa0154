// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <system_error>

namespace diwarp::rnic {

/// Told, with the baton held, what becomes of an RC queue pair and its connection.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  /// The responder's first FPDU may go out: the initiator's first has come.
  virtual void on_ready() = 0;
  /// The connection has ended, for whatever reason; timed_out where the peer answered no more.
  virtual void on_end(std::error_code status) = 0;
  /// The queue pair is no longer this observer's: it goes, or has another.
  virtual void on_detached() = 0;
};

}  // namespace diwarp::rnic
