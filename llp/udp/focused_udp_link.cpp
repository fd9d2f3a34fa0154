// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/focused_udp_link.h"

#include <algorithm>
#include <utility>

#include "llp/udp/udp_open.h"

namespace diwarp::llp {
namespace {

bool all_go_to(const Destination& peer, std::span<const OutgoingDatagram> burst) {
  return std::all_of(burst.begin(), burst.end(), [&](const OutgoingDatagram& datagram) {
    return datagram.to == peer.address && datagram.local == peer.local;
  });
}

bool is_a_host(const Address& address) {
  return !address.is_multicast() && !address.is_broadcast() && !address.is_any();
}

}  // namespace

std::unique_ptr<FocusedUdpLink> FocusedUdpLink::open(const Address& local,
                                                     const UdpOptions& options,
                                                     uint32_t connect_after) {
  return std::unique_ptr<FocusedUdpLink>(
      new FocusedUdpLink(bound_udp_socket(local, options.share_port), options, connect_after));
}

FocusedUdpLink::FocusedUdpLink(UniqueFd fd, const UdpOptions& options, uint32_t connect_after)
    : UdpLink(std::move(fd), options), connect_after_(connect_after) {}

// --- Sending.

SendResult FocusedUdpLink::send(std::span<const OutgoingDatagram> burst) {
  if (watched_ || connect_after_ == 0 || burst.empty()) return sender().send(burst);
  const bool favoured = all_go_to(favourite_, burst);
  const bool focused = favoured && companion_ != nullptr && !leaving_;
  const SendResult result = focused ? send_connected(burst) : sender().send(burst);
  if (companion_ == nullptr)
    seek(burst.front().destination(), favoured);
  else
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

void FocusedUdpLink::seek(const Destination& destination, bool again) {
  if (!again) favourite_ = destination;
  streak_ = again ? streak_ + 1 : 0;
  if (streak_ < connect_after_) return;
  streak_ = 0;
  // A connection to itself would hear nobody else.
  const bool is_this_link = destination.address == local_address();
  if (!is_a_host(destination.address) || is_this_link) return;
  companion_ = beside(destination);
  if (companion_ == nullptr) return degradations().add(Counter::connect_refused);
  companion_->on_degradation([this](const Degradation& what) { degradations().add(what.counter); });
  companion_->on_icmp([this](const IcmpReport& report) { report_icmp(report); });
  looks_ahead_ = kReceivesPerLook;
  until_look_ = between_looks_ = 1;
}

void FocusedUdpLink::doubt(bool favoured) {
  streak_ = favoured ? 0 : streak_ + 1;
  if (streak_ >= connect_after_) leave();
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
  streak_ = 0;
}

// --- Receiving.

size_t FocusedUdpLink::receive(ReceiveBatch& batch) {
  close_if_done();
  if (companion_ == nullptr) return receiver().receive(batch);
  if (leaving_) {
    const size_t left = companion_->receive(batch);
    return left != 0 ? left : receiver().receive(batch);
  }
  if (--until_look_ == 0) {
    const size_t got = receiver().receive(batch);
    plan_look(got != 0);
    if (got != 0) return got;
  }
  return companion_->receive(batch);
}

/// When the first socket is asked again: the sooner, the less it was silent. Before the second is
/// read, it is read empty, for that came earlier; but others may keep filling it.
void FocusedUdpLink::plan_look(bool came) {
  if (!came) looks_ahead_ = 0;
  between_looks_ = came ? 2 : std::min(2 * between_looks_, kReceivesPerLook);
  until_look_ = looks_ahead_ != 0 ? 1 : between_looks_;
  if (looks_ahead_ != 0) --looks_ahead_;
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
