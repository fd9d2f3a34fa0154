// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/timer_queue.h"
#include "llp/datagram.h"
#include "rnic/queue_pair.h"
#include "rnic/ud_receive.h"
#include "rnic/ud_transmit.h"

namespace diwarp::rnic {

/// A UD queue pair: a UDP port. Its number is the port. Further receive sockets (a group, a
/// broadcast address) are endpoints of their own that hand their datagrams to handle().
class UdQueuePair final : public QueuePair {
 public:
  UdQueuePair(std::shared_ptr<ProtectionDomain> domain, const QueuePairInit& init);
  ~UdQueuePair() override;

  uint32_t number() const override { return address_.port(); }
  const Address& address() const { return address_; }
  QueuePairAttributes query() override;
  void set_max_rate(uint64_t bytes_per_second);

  // --- With the baton.

  size_t receive(Time now) override;
  Served transmit(Time now) override;

 protected:
  std::error_code check_send(const SendWorkRequest& request) const noexcept override;
  void on_state(QpState now) override;

 private:
  void on_expiry(Time now);
  void on_paced(Time now);
  void arm_expiry();
  void count_overflow();

  std::unique_ptr<llp::DatagramLink> link_;
  const Address address_;
  const DatagramOptions options_;
  uint64_t max_rate_;
  uint64_t overflowed_ = 0;
  UdTransmit transmit_;
  UdReceive receive_;
  MemberTimer<UdQueuePair, &UdQueuePair::on_expiry> expiry_{*this};
  MemberTimer<UdQueuePair, &UdQueuePair::on_paced> paced_{*this};
};

}  // namespace diwarp::rnic
