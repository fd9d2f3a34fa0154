// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace diwarp::llp {

/// Decides when the kernel should coalesce what comes in for a socket (UDP_GRO). Where it does,
/// each look at the socket needs room for control messages, which tell where the datagrams of a
/// train end: that costs a third more than a look without. So it stops while datagrams come one by
/// one, and begins again with the first few that wait together.
///
/// A train that is read after coalescing stopped has lost its ends. So it stops when nothing waits,
/// and nothing is read until a few looks have found nothing; if one finds something, it begins
/// again before that is read.
class Coalescing {
 public:
  enum class Change : uint8_t { none, stop, begin };

  /// In a row, before it stops.
  static constexpr uint32_t kLone = 256;
  /// Waiting together, with which it begins again.
  static constexpr size_t kTogether = 4;
  /// Looks that must find nothing after it stopped: trains may be on their way into the socket.
  static constexpr uint32_t kSettlingLooks = 4;
  /// One in so many lone datagrams is read with its control messages nonetheless: they count what
  /// the socket had no room for.
  static constexpr uint32_t kCountEach = 64;

  /// After a receive of so many datagrams: the setting that the socket has to be told.
  Change after(size_t datagrams) {
    if (datagrams == 0) return after_nothing();
    if (datagrams == 1) {
      ++lone_;
      return Change::none;
    }
    lone_ = 0;
    if (state_ == State::on || datagrams < kTogether) return Change::none;
    state_ = State::on;
    return Change::begin;
  }

  /// Whether nothing may be read yet, but after_look() wants to know whether something waits.
  bool settles() const { return state_ == State::settling; }
  Change after_look(bool something_waits) {
    if (something_waits) {
      lone_ = 0;
      state_ = State::on;
      return Change::begin;
    }
    if (++empty_looks_ >= kSettlingLooks) state_ = State::off;
    return Change::none;
  }

  /// Whether the next datagram may be read without control messages.
  bool reads_plain() const { return state_ == State::off && lone_ % kCountEach != 0; }

 private:
  enum class State : uint8_t { on, settling, off };

  Change after_nothing() {
    if (state_ != State::on || lone_ < kLone) return Change::none;
    state_ = State::settling;
    empty_looks_ = 0;
    return Change::stop;
  }

  State state_ = State::on;
  uint32_t lone_ = 0;  // since the last that came together with others
  uint32_t empty_looks_ = 0;
};

}  // namespace diwarp::llp
