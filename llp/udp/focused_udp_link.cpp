// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/focused_udp_link.h"

#include <algorithm>
#include <utility>

#include "llp/udp/udp_open.h"

namespace diwarp::llp {

std::unique_ptr<FocusedUdpLink> FocusedUdpLink::open(const Address& local,
                                                     const UdpOptions& options,
                                                     uint32_t connect_after) {
  return std::unique_ptr<FocusedUdpLink>(
      new FocusedUdpLink(bound_udp_socket(local, options.share_port), options, connect_after));
}

FocusedUdpLink::FocusedUdpLink(UniqueFd fd, const UdpOptions& options, uint32_t connect_after)
    : UdpLink(std::move(fd), options), connect_after_(connect_after), streak_(connect_after) {}

// --- Sending.

SendResult FocusedUdpLink::send(std::span<const OutgoingDatagram> burst) {
  if (watched_ || !streak_.counts() || burst.empty()) return sender().send(burst);
  if (companion_ == nullptr) {
    const SendResult result = sender().send(burst);
    if (streak_.add(burst)) connect();
    return result;
  }
  const bool favoured = all_go_to(streak_.destination(), burst);
  const SendResult result = favoured && !leaving_ ? send_connected(burst) : sender().send(burst);
  doubt(favoured);
  return result;
}

/// A datagram that the second socket refuses is for the first one to decide; if that sends it, the
/// second is of no use any more.
SendResult FocusedUdpLink::send_connected(std::span<const OutgoingDatagram> burst) {
  const SendResult result = companion_->send(burst);
  // guard(second-socket-refused): => return result;
  if (result.status != SendStatus::refused) return result;
  SendResult rest = sender().send(burst.subspan(result.sent));
  if (rest.sent != 0) leave();
  rest.sent += result.sent;
  return rest;
}

void FocusedUdpLink::connect() {
  // A connection to itself would hear nobody else.
  const Destination& favourite = streak_.destination();
  const bool is_this_link = favourite.address == local_address();
  if (!is_a_host(favourite.address) || is_this_link) return;
  companion_ = beside(favourite);
  if (companion_ == nullptr) return degradations().add(Counter::connect_refused);
  companion_->on_degradation([this](const Degradation& what) { degradations().add(what.counter); });
  companion_->on_icmp([this](const IcmpReport& report) { report_icmp(report); });
  elsewhere_ = 0;
  first_socket_.begin();
}

void FocusedUdpLink::doubt(bool favoured) {
  elsewhere_ = favoured ? 0 : elsewhere_ + 1;
  if (elsewhere_ >= connect_after_) leave();
}

void FocusedUdpLink::leave() {
  if (std::exchange(leaving_, true)) return;
  companion_->turn_away();
}

/// Closes the second socket, if it has been left and read empty.
void FocusedUdpLink::close_if_done() {
  // guard(second-socket-drained): condition => !leaving_
  if (!leaving_ || companion_->something_waits()) return;
  companion_->learn_overflow();
  overflowed_before_ += companion_->overflowed();
  companion_.reset();
  leaving_ = false;
  streak_ = DestinationStreak(connect_after_);
}

// --- Receiving.

size_t FocusedUdpLink::receive(ReceiveBatch& batch) {
  close_if_done();
  if (companion_ == nullptr) return receiver().receive(batch);
  if (leaving_) {
    const size_t left = companion_->receive(batch);
    return left != 0 ? left : receiver().receive(batch);
  }
  if (first_socket_.is_due()) {
    const size_t got = receiver().receive(batch);
    first_socket_.looked(got != 0);
    if (got != 0) return got;
  }
  return companion_->receive(batch);
}

bool FocusedUdpLink::set_watched(bool watched) {
  if (watched && companion_ != nullptr) {
    leave();
    close_if_done();
  }
  watched_ = watched && companion_ == nullptr;
  return watched_ == watched;
}

uint64_t FocusedUdpLink::overflowed() const {
  const uint64_t now = companion_ == nullptr ? 0 : companion_->overflowed();
  return UdpLink::overflowed() + overflowed_before_ + now;
}

}  // namespace diwarp::llp
