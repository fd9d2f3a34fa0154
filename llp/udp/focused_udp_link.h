// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "llp/favoured_destination.h"
#include "llp/udp/udp_link.h"

namespace diwarp::llp {

/// A UDP socket that, while it is asked in every step (set_watched()), earns its most frequent
/// destination a second one, connected to it: the kernel then needs no route for what goes there,
/// and finds the socket for what comes from there sooner. All else is as with UdpLink.
class FocusedUdpLink final : public UdpLink {
 public:
  /// So many bursts in a row to one destination make it the connected one; as many that do not all
  /// go there end that. 0: never. Throws as UdpLink::open() does.
  static std::unique_ptr<FocusedUdpLink> open(const Address& local, const UdpOptions& options,
                                              uint32_t connect_after);

  SendResult send(std::span<const OutgoingDatagram> burst) override;
  size_t receive(ReceiveBatch& batch) override;
  bool set_watched(bool watched) override;
  uint64_t overflowed() const override;

  /// Whether there is a second socket now.
  bool focused() const { return companion_ != nullptr; }

  /// While there is one, the first that stays silent is asked in one receive of so many.
  static constexpr uint32_t kReceivesPerLook = 16;

 private:
  FocusedUdpLink(UniqueFd fd, const UdpOptions& options, uint32_t connect_after);

  SendResult send_connected(std::span<const OutgoingDatagram> burst);
  void connect();
  void doubt(bool favoured);
  void leave();
  void close_if_done();

  const uint32_t connect_after_;
  bool watched_ = true;
  bool leaving_ = false;                // the companion is read empty, and then closed
  std::unique_ptr<UdpLink> companion_;  // on the second socket, connected to the favourite
  DestinationStreak streak_;  // while there is no companion: its destination is the favourite
  uint32_t elsewhere_ = 0;    // bursts in a row that did not all go to the favourite
  LookPlan first_socket_{kReceivesPerLook};
  uint64_t overflowed_before_ = 0;  // at companions that are closed
};

}  // namespace diwarp::llp
