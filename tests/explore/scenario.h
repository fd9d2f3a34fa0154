// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire.h"

namespace diwarp::explore {

enum class OperationKind : uint8_t { send, record, read };

/// The faults for which the peer refuses an operation, besides its length.
enum class Flaw : uint8_t {
  none,
  q_key,  ///< a Send with another Q_Key
  stag,   ///< a Write-Record to, or Read of, an STag that names nothing
};

struct Operation {
  OperationKind kind = OperationKind::send;
  uint32_t datagrams = 1;  ///< of its message, or of its response; 0: no payload
  Flaw flaw = Flaw::none;
  bool later = false;  ///< posted during the run, not at its start

  /// Payload in bytes.
  size_t length() const;
};

/// The events that may happen at either end, once each, between any two datagrams.
enum class EventKind : uint8_t {
  gone,        ///< the region that an operation names at its target is deregistered
  invalidate,  ///< a local invalidate of that region is posted at the target
  source,      ///< the region of an operation's local buffer is deregistered
  reset,       ///< a queue pair goes to reset, and to rts again
  anew,        ///< a queue pair is destroyed, and another made on the same port
  pause,       ///< three seconds pass, and nothing moves
  narrow,      ///< the path becomes too narrow for what was sent before
  untold,      ///< the same, but the link does not know: it refuses what it should carry
  hole,        ///< the same, and what is too long is lost without a word
  post,        ///< an operation is posted that was put off
  receives,    ///< an end posts its receives, which it had not at the start
};

struct Event {
  EventKind kind = EventKind::post;
  size_t side = 0;       ///< of the operation, or where it happens
  size_t operation = 0;  ///< index among its side's

  std::string to_string() const;
};

/// The operations of two RD queue pairs with each other, and the events meanwhile.
///
/// Written as the operations of A and B, then words:
///   s3,r1/w2 gone window=4
/// An operation is s (Send), w (Write-Record) or r (Read), and a number of datagrams, 0 to 4; then
/// `k` (another Q_Key) or `x` (an STag that names nothing), and `~` where it is posted during the
/// run. Words:
///   gone invalidate source reset anew pause narrow untold hole   events that are on the menu
///   late-receives                              both ends post their receives during the run
///   cold                                       the association is not open at the start
///   short                                      receives have room for one datagram's payload
///   slow                                       an end takes one step for each datagram
///   batch                                      both take one when the wire is empty
///   window=N buffer=N                          receive_window, max_buffer
struct Scenario {
  std::string name;
  std::array<std::vector<Operation>, kSides> operations = {};
  std::vector<EventKind> menu = {};
  bool late_receives = false;
  bool cold = false;
  bool short_receives = false;
  bool slow = false;
  bool batch = false;
  uint32_t window = 8;
  uint32_t buffer = 1 << 20;

  /// Throws std::invalid_argument with a message.
  static Scenario parse(std::string_view text);

  size_t receive_bytes() const;
  /// All that may happen, once each.
  std::vector<Event> events() const;
};

/// The largest datagram, in bytes, before and after the path becomes narrow.
inline constexpr uint32_t kSegment = 192;
inline constexpr uint32_t kNarrowSegment = 150;

}  // namespace diwarp::explore
