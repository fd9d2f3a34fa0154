// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/device.h>

#include <chrono>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace diwarp::tools {

using Json = nlohmann::ordered_json;
using Time = std::chrono::steady_clock::time_point;

/// The TCP connection over which the two ends of a run agree: one JSON object a line, each with a
/// "type". Measured messages never go this way. It also tells that the peer died, since the kernel
/// closes it. All that comes in is hostile until it has been read as what was expected.
class Control {
 public:
  Control(UniqueFd fd, Duration timeout);

  /// Throws Failure if no one listens at `peer`, or no connection comes about in time.
  static Control connect(const Address& peer, Duration timeout);

  Address local_address() const { return local_; }
  Address peer_address() const { return peer_; }
  /// How long this run waits for anything that the peer should do.
  Duration timeout() const { return timeout_; }

  void send(const Json& message);

  /// The next message. Throws PeerGone if the connection ends or the peer tells an error, Failure
  /// if nothing comes in time.
  Json next();
  Json next(Duration timeout);
  /// The next message, which must be of this type: throws Failure, too, if it is not.
  Json expect(std::string_view type);
  Json expect(std::string_view type, Duration timeout);

  /// Reads what has come, without waiting. Throws PeerGone as expect() does.
  void look();
  /// True if a message waits for expect().
  bool pending() const { return !messages_.empty(); }
  /// The message that next() returns then.
  Json peek() const;

  /// Throw Failure: nothing came in time; a message of this type came where another was due.
  [[noreturn]] void fail_silence() const;
  [[noreturn]] void fail_word(const std::string& type) const;

  /// Waits for what tells that the peer is gone: throws PeerGone or PeerStopped; returns if it
  /// seems alive until the deadline.
  void check_fate(Time deadline);

  /// Tells the peer why this end stops, which is the last that it says; never throws.
  void send_error(std::string_view message) noexcept;
  /// Takes what the peer still sends until it ends, but not beyond the deadline. Closing with
  /// something unread would reset the connection, and the peer would not get the last message.
  void drain(Time deadline) noexcept;

 private:
  bool read_some(Time deadline);
  void take_lines();
  void take_line(const std::string& line);
  [[noreturn]] void fail_gone() const;
  [[noreturn]] void fail_foreign() const;

  UniqueFd fd_;
  Duration timeout_;
  Address local_;
  Address peer_;
  bool greeted_ = false;  // a well-formed message has come: the peer is one of our tools
  std::string input_;     // the beginning of a line
  std::deque<std::string> messages_;
};

/// The control connections to all peers of an end: one, or one for each receiver of a group. A
/// view.
class Peers {
 public:
  Peers(Control& one) : all_(&one, 1) {}  // NOLINT: meant to convert
  explicit Peers(std::span<Control> all) : all_(all) {}
  /// For ends that have one peer.
  operator Control&() const { return all_.front(); }  // NOLINT: meant to convert

  Control& front() const { return all_.front(); }
  Control& operator[](size_t index) const { return all_[index]; }
  size_t size() const { return all_.size(); }
  /// Which of them it is, if it is one.
  std::optional<size_t> index_of(const Control& control) const;
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  void send(const Json& message) const;
  /// Control::look() of all but the first, which spin() looks after.
  void look_at_others() const;
  /// True if a message of each waits for expect().
  bool pending() const;

 private:
  std::span<Control> all_;
};

/// Where a server waits for the other end. Port 0: a free one.
class ControlListener {
 public:
  explicit ControlListener(const Address& address);
  Address address() const { return local_address_of_listener_; }

  /// The next connection. Throws Failure after `timeout`; nothing: waits for ever.
  UniqueFd accept(std::optional<Duration> timeout);
  /// Nothing if none has come by then.
  std::optional<UniqueFd> try_accept(Time deadline);

 private:
  UniqueFd fd_;
  Address local_address_of_listener_;
};

/// "10 s", "200 ms".
std::string to_text(Duration duration);

/// A member of a message, checked: throws Failure if it is missing, of another type or not within
/// `low` to `high`.
uint64_t number_in(const Json& message, const char* name, uint64_t low, uint64_t high);
/// A number that need not be whole, 0 or more.
double positive_in(const Json& message, const char* name);
bool flag_in(const Json& message, const char* name);
std::string text_in(const Json& message, const char* name);
/// Without a port.
Address address_in(const Json& message, const char* name);

}  // namespace diwarp::tools
