// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>

#include "diwarp/connect_options.h"
#include "rnic/cm/connecting.h"
#include "rnic/cm/connection_request.h"
#include "rnic/cm/control.h"
#include "rnic/context/meeting.h"

namespace diwarp::rnic {

/// Waits between two tries to connect, the first and the longest: a peer may be named later on the
/// other side than on this one, and rejects until then.
inline constexpr Duration kFirstMeetingRetry = std::chrono::milliseconds(5);
inline constexpr Duration kLongestMeetingRetry = std::chrono::milliseconds(200);

/// The longest that one try takes: a peer that vanished in the middle of it may be back.
inline constexpr Duration kMeetingAttempt = std::chrono::seconds(10);

/// The private data of a meeting's request: the numbers of both queue pairs (docs/wire-format.md).
struct MeetingNames {
  static constexpr size_t kBytes = 12;

  uint32_t from = 0;
  uint32_t to = 0;

  std::array<std::byte, kBytes> encode() const;
  /// Nothing where these are not such data.
  static std::optional<MeetingNames> parse(std::span<const std::byte> data);
};

/// The connection of one queue pair to the peer that was named to it. Of the two sides the one with
/// the lower number connects, or, where the numbers are equal, the one at the lower address; the
/// other one accepts, at a MeetingPoint. Each expects the other, and no third peer. Handlers of the
/// control path keep it alive, and it does not keep the device.
class Meeting final : public PendingMeeting, public std::enable_shared_from_this<Meeting> {
 public:
  /// For a queue pair of this number, which outlives the meeting or cancels it. Throws Error where
  /// the options cannot be told, or the peer not be reached.
  Meeting(Control& control, uint32_t number, const NamedPeer& peer, MeetingParty& party);

  void begin() override;
  void limit(Duration timeout) override;
  void cancel() noexcept override;

  // --- On the control path.

  /// Whether this is the request that the party waits for.
  bool expects(const MeetingNames& names, const Address& from) const;
  void accept(IncomingRequest request);

 private:
  void start();
  void set_deadline(Duration timeout);
  void try_once();
  void on_outcome(ConnectOutcome outcome);
  void retry_later();
  void meet(NegotiatedConnection connection);
  void miss();
  void end();
  Duration left() const;

  Control& control_;
  const uint32_t number_;
  const NamedPeer peer_;
  const Address source_;
  const bool connects_;
  std::atomic<bool> over_{false};  // cancelled, or told

  MeetingParty* party_;  // guarded by the baton; null: it is told nothing any more

  // Of the control path.
  std::shared_ptr<Connecting> connecting_;
  std::chrono::steady_clock::time_point deadline_{};
  std::string trouble_;  // why the last attempt failed
  Duration retry_ = kFirstMeetingRetry;
  boost::asio::steady_timer retry_timer_;
  boost::asio::steady_timer deadline_timer_;
};

/// The meetings of a device in which a peer's request is awaited, by the queue pairs' numbers. On
/// the control path.
class Meetings {
 public:
  void add(uint32_t number, std::weak_ptr<Meeting> meeting) { all_[number] = std::move(meeting); }
  void remove(uint32_t number, const Meeting& meeting);
  /// Takes a request of a meeting over, or leaves it as it is: then it is rejected.
  void take(IncomingRequest& request);

 private:
  std::unordered_map<uint32_t, std::weak_ptr<Meeting>> all_;  // at most one a queue pair
};

}  // namespace diwarp::rnic
