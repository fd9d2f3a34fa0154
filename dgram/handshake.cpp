// SPDX-License-Identifier: Apache-2.0
#include "dgram/handshake.h"

#include <algorithm>

#include "base/serial.h"

namespace diwarp::dgram {
namespace {

constexpr Duration kFirstPatience = std::chrono::milliseconds(50);
constexpr uint8_t kMostDoublings = 3;
constexpr uint64_t kBase = uint64_t{1} << 32;  // of sequence numbers

}  // namespace

void Handshake::open(uint32_t epoch, uint64_t nonce, Time now) {
  state_ = State::opening;
  epoch_ = epoch;
  peer_epoch_ = 0;
  peer_incarnation_ = 0;
  proof_ = {.nonce = nonce};
  attempts_ = 0;
  answers_ = 0;
  attempted_ = now;
}

bool Handshake::challenged(uint32_t incarnation, const Challenge& challenge, Time now) {
  // guard(rd-challenge): condition => state_ != State::opening
  if (state_ != State::opening || challenge.nonce != proof_.nonce) return false;
  if (incarnation == 0 || answers_ >= kMostAnswers) return false;
  ++answers_;
  peer_incarnation_ = incarnation;
  proof_ = challenge;
  attempted_ = now;
  return true;
}

Time Handshake::open_deadline(Duration longest) const {
  const Duration patience = kFirstPatience * (int64_t{1} << std::min(attempts_, kMostDoublings));
  return attempted_ + std::min(patience, std::max(longest, kFirstPatience));
}

void Handshake::on_open_deadline(Time now) {
  if (attempts_ < UINT8_MAX) ++attempts_;
  answers_ = 0;
  attempted_ = now;
}

std::optional<Duration> Handshake::acceptance_time(Time now) const {
  if (attempts_ != 0 || answers_ != 1) return std::nullopt;
  return now - attempted_;
}

Handshake::Verdict Handshake::check(const RdHeader& header, uint32_t incarnation, uint32_t own) {
  const bool to_this = header.peer_incarnation == own;
  if (header.kind == RdKind::reset) {
    // guard(dgram): without && header.peer_epoch == epoch_
    // guard(dgram): without && header.epoch == peer_epoch_
    // guard(rd-reset-names): without to_this &&
    const bool of_this =
        established() && to_this && header.epoch == peer_epoch_ && header.peer_epoch == epoch_;
    return of_this ? Verdict::ended : Verdict::stale;
  }
  // guard(dgram): without && header.peer_epoch == epoch_
  const bool of_this = to_this && state_ != State::closed && header.peer_epoch == epoch_;
  // guard(rd-incarnation-told): without peer_incarnation_ != 0 &&
  // guard(rd-incarnation-told): without && peer_incarnation_ == incarnation
  if (established()) {
    const bool from_peer = incarnation == peer_incarnation_;
    // guard(dgram): condition => of_this && from_peer
    // guard(dgram): without from_peer &&
    if (of_this && from_peer && header.epoch == peer_epoch_) {
      known_incarnation_ = incarnation;
      return Verdict::ours;
    }
    // guard(dgram): without to_this &&
    if (to_this && from_peer && serial_before(header.epoch, peer_epoch_)) return Verdict::stale;
  } else if (of_this && peer_incarnation_ != 0 && peer_incarnation_ == incarnation) {
    establish(epoch_, incarnation, header);
    known_incarnation_ = incarnation;
    return Verdict::accepted;
  }
  const bool answered = header.sequenced() || header.kind == RdKind::probe;
  return answered ? Verdict::unknown : Verdict::stale;
}

Handshake::OpenVerdict Handshake::check_open(const RdHeader& header, uint32_t incarnation) const {
  if (incarnation == former_incarnation_) return OpenVerdict::stale;
  if (!established()) return OpenVerdict::joins;
  if (incarnation != peer_incarnation_) return OpenVerdict::replaces;
  if (header.epoch == peer_epoch_) return OpenVerdict::again;
  return serial_before(header.epoch, peer_epoch_) ? OpenVerdict::stale : OpenVerdict::replaces;
}

void Handshake::establish(uint32_t epoch, uint32_t incarnation, const RdHeader& header) {
  remembers_ = known_incarnation_ == incarnation;  // guard(dgram-explore): => remembers_ = true;
  if (last_incarnation_ != 0 && last_incarnation_ != incarnation)
    former_incarnation_ = last_incarnation_;
  last_incarnation_ = incarnation;
  if (state_ != State::opening) epoch_ = epoch;
  state_ = State::established;
  peer_incarnation_ = incarnation;
  peer_epoch_ = header.epoch;
  peer_remembers_ = header.remembers();
}

bool Handshake::remembers() const {
  return established() ? remembers_
                       : peer_incarnation_ != 0 && peer_incarnation_ == known_incarnation_;
}

uint64_t Handshake::first_sent(uint32_t own) const {
  return kBase + first_sequence(here(own), there());
}

uint64_t Handshake::first_received(uint32_t own) const {
  return kBase + first_sequence(there(), here(own));
}

RdHeader Handshake::header(RdKind kind) const {
  return {.kind = kind,
          .flags = remembers() ? kRdRemembersFlag : uint8_t{0},
          .epoch = epoch_,
          .peer_epoch = peer_epoch_,
          .peer_incarnation = peer_incarnation_};
}

RdHeader rd_reset_for(const RdHeader& offending, uint32_t incarnation) {
  return {.kind = RdKind::reset,
          .epoch = offending.peer_epoch,
          .peer_epoch = offending.epoch,
          .peer_incarnation = incarnation,
          .sequence = offending.sequence};  // guard(rd-reset-answer): offending.sequence => 1
}

}  // namespace diwarp::dgram
