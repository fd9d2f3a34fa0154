// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "dgram/control.h"
#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// The names by which two queue pairs know their association, and how they agree on them
/// (docs/wire-format.md has the rules). One side's view. Time, and all that is random, comes in as
/// an argument.
class Handshake {
 public:
  enum class State : uint8_t {
    closed,
    opening,      ///< this side wants it
    established,  ///< both know it
  };
  State state() const { return state_; }
  bool established() const { return state_ == State::established; }
  uint32_t epoch() const { return epoch_; }
  uint32_t peer_epoch() const { return peer_epoch_; }
  /// 0: not known.
  uint32_t peer_incarnation() const { return peer_incarnation_; }

  // --- Opening.

  /// Begins to open one, named `epoch` (not 0) here. A Challenge must repeat `nonce`. The
  /// open is to be sent.
  void open(uint32_t epoch, uint64_t nonce, Time now);
  /// A Challenge came from the peer. True: it repeats the nonce, and the open is to be sent again
  /// at once. The peer cannot have it sent more often than a few times a second.
  bool challenged(uint32_t incarnation, const Challenge& challenge, Time now);
  /// The proof to put into an open.
  const Challenge& proof() const { return proof_; }
  /// When the open is to be sent again, while opening; at most `longest` after the last time.
  Time open_deadline(Duration longest) const;
  void on_open_deadline(Time now);
  /// How long the peer took to accept; nothing where that cannot be told.
  std::optional<Duration> acceptance_time(Time now) const;

  // --- Input.

  enum class Verdict : uint8_t {
    ours,      ///< of this association
    accepted,  ///< the same, and it has become established by that
    stale,     ///< to be dropped
    unknown,   ///< to be answered by a reset
    ended,     ///< a reset: the peer does not have it, if it had the number that this repeats
  };
  /// Checks any kind but open. `incarnation`: in the prefix; `own`: the one that this side shows
  /// the peer. Nothing is accepted before a Challenge told the peer's incarnation.
  Verdict check(const RdHeader& header, uint32_t incarnation, uint32_t own);

  enum class OpenVerdict : uint8_t {
    again,     ///< to be answered as the first time
    stale,     ///< to be dropped
    joins,     ///< there was none, or this side was opening too: establish()
    replaces,  ///< the one that was there has ended: end it, then establish()
  };
  /// Checks an open whose cookie is valid.
  OpenVerdict check_open(const RdHeader& header, uint32_t incarnation) const;

  /// The numbers of the first datagrams that this side sends and gets, 64 bits wide: they never
  /// wrap, and there is one before the first. `own`: the incarnation that this side shows the peer.
  uint64_t first_sent(uint32_t own) const;
  uint64_t first_received(uint32_t own) const;

  /// Whether the peer took part in an association of the same two incarnations before this one, one
  /// that was established here, and has forgotten nothing since: then it knows what it delivered.
  bool peer_remembers() const { return peer_remembers_; }
  /// This side gives up what it has of the peer's messages.
  void forget() { known_incarnation_ = 0; }

  /// `epoch`: of this side, where it does not have one by opening. `header`: of the peer's datagram
  /// by which the association is there.
  void establish(uint32_t epoch, uint32_t incarnation, const RdHeader& header);
  void close() { state_ = State::closed; }

  /// A header with this association's names.
  RdHeader header(RdKind kind) const;

 private:
  static constexpr uint8_t kMostAnswers = 4;

  bool remembers() const;
  /// The names of the two ends.
  EndNames here(uint32_t own) const { return {own, epoch_}; }
  EndNames there() const { return {peer_incarnation_, peer_epoch_}; }

  State state_ = State::closed;
  uint8_t attempts_ = 0;
  uint8_t answers_ = 0;  // to Challenges, since the last attempt by the timer
  uint32_t epoch_ = 0;
  uint32_t peer_epoch_ = 0;
  uint32_t peer_incarnation_ = 0;
  bool remembers_ = false;       // the deliveries of earlier associations of the same incarnations
  bool peer_remembers_ = false;  // the peer remembers them
  uint32_t known_incarnation_ = 0;   // the peer's, of which something came in an association
  uint32_t last_incarnation_ = 0;    // the peer's, of the last one that was established
  uint32_t former_incarnation_ = 0;  // the one before, which is not there any more
  Challenge proof_;
  Time attempted_{};
};

/// The reset that answers a datagram of class RD with this header, which came with `incarnation`.
RdHeader rd_reset_for(const RdHeader& offending, uint32_t incarnation);

}  // namespace diwarp::dgram
