// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "mpa/startup.h"

namespace diwarp::rnic {

/// The bytes of an initiator's start-up (RFC 5044 section 7.1): what of the MPA request has been
/// sent, and what of the reply has come. Does no I/O; its Connecting owns it and moves the bytes.
class StartupExchange {
 public:
  /// Nothing was asked yet, whatever came of an exchange before.
  void reset() { requested_ = false; }
  /// The request is out, or on its way, from now on.
  void begin(const mpa::StartupFrame& request) {
    requested_ = true;
    sent_ = received_ = 0;
    request_.resize(mpa::startup_bytes(request));
    mpa::encode(request, request_);
  }
  bool requested() const { return requested_; }

  // --- The request.

  ConstBytes unsent() const { return std::span(request_).subspan(sent_); }
  void count_sent(size_t bytes) { sent_ += bytes; }

  // --- The reply.

  /// Where its next bytes go.
  Bytes room() { return std::span(reply_).subspan(received_); }
  void count_received(size_t bytes) { received_ += bytes; }
  ConstBytes received() const { return std::span(reply_).first(received_); }

 private:
  std::vector<std::byte> request_;
  std::array<std::byte, 1024> reply_;  // has room for the longest frame
  size_t sent_ = 0;
  size_t received_ = 0;
  bool requested_ = false;
};

}  // namespace diwarp::rnic
