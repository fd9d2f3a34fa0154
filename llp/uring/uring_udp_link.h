// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "llp/udp/udp_link.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {

/// A UDP socket whose datagrams a ring brings, and bursts leave through it; all else is as with
/// UdpLink. May be made and destroyed by any thread.
class UringUdpLink final : public UdpLink {
 public:
  static std::unique_ptr<UringUdpLink> open(std::shared_ptr<UringQueue> queue, const Address& local,
                                            const UdpOptions& options = {});
  static std::unique_ptr<UringUdpLink> adopt(std::shared_ptr<UringQueue> queue,
                                             int bound_descriptor, const UdpOptions& options = {});
  ~UringUdpLink() override;

  SendResult send(std::span<const OutgoingDatagram> burst) override;
  size_t receive(ReceiveBatch& batch) override;
  InputQueue* input_queue() const override;
  void set_key(void* key) override;

 protected:
  std::unique_ptr<DatagramLink> on_group(UniqueFd fd) override;

 private:
  UringUdpLink(std::shared_ptr<UringQueue> queue, UniqueFd fd, const UdpOptions& options,
               bool group);
  size_t receive_pieces(ReceiveBatch& batch);

  std::unique_ptr<UringInput> input_;
};

}  // namespace diwarp::llp
