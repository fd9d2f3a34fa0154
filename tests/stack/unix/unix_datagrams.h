// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"
#include "llp/datagram_link.h"

namespace diwarp::test {

/// Datagrams over a Unix-domain socket. A peer whose queue is full holds the link up, as a full
/// network device would, and nothing is lost. There are no groups.
class UnixDatagramLink final : public llp::DatagramLink {
 public:
  /// Port 0 takes a free one. Throws Error: Errc::address_in_use, or the system's errno.
  UnixDatagramLink(const Address& local, size_t send_buffer);

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override;
  size_t receive(llp::ReceiveBatch& batch) override;
  size_t max_datagram(const Address&) override { return llp::kMaxDatagram; }
  Address local_address() const override { return local_; }
  int descriptor() const override { return fd_.get(); }
  void on_degradation(std::function<void(const llp::Degradation&)> callback) override;

 private:
  UniqueFd fd_;
  Address local_;
  bool buffer_cut_;
};

}  // namespace diwarp::test
