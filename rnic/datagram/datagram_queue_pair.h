// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/timer_queue.h"
#include "dgram/address_validation.h"
#include "dgram/envelope.h"
#include "dgram/identity.h"
#include "llp/datagram_link.h"
#include "rdmap/datagram.h"
#include "rnic/context/loopback_reach.h"
#include "rnic/datagram/control_sender.h"
#include "rnic/datagram/datagram_receiver.h"
#include "rnic/datagram/datagram_sender.h"
#include "rnic/datagram/error_reports.h"
#include "rnic/datagram/joined_groups.h"
#include "rnic/datagram/network_reports.h"
#include "rnic/datagram/record_table.h"
#include "rnic/datagram/route_header.h"
#include "rnic/datagram/source_filters.h"
#include "rnic/datagram/verdict.h"
#include "rnic/datagram/waker.h"
#include "rnic/queues/queue_pair.h"

namespace diwarp::rnic {

/// The common part of UD and RD queue pairs: a UDP port (the queue pair's number), a source filter,
/// groups, Write-Records, errors, and how datagrams go out.
class DatagramQueuePair : public QueuePair,
                          public provider::DatagramOperations,
                          private DatagramReceiver,
                          private Waker {
 public:
  /// Throws Error. A derived class calls attach_to_engine() when it is made, and
  /// detach_from_engine() before any of it is gone.
  DatagramQueuePair(std::shared_ptr<ProtectionDomain> domain, const provider::QueuePairInit& init);
  ~DatagramQueuePair() override;

  // --- Any thread, without the baton.

  uint32_t number() const override { return address_.port(); }
  Address local_address() override { return address_; }
  QueuePairAttributes query() override;
  DatagramOperations* datagram() override { return this; }
  uint32_t max_datagram_payload(const Address& destination) override;
  void set_q_key(uint32_t q_key) override;
  void set_max_rate(uint64_t bytes_per_second) override;
  void join(const Address& group, std::string_view interface) override {
    groups_.join(group, interface);
  }
  void leave(const Address& group, std::string_view interface) override {
    groups_.leave(group, interface);
  }
  void set_sources(std::span<const SourceFilter> sources) override;
  std::optional<DatagramError> poll_error() override;
  std::vector<OpenRecord> open_records() override;
  std::vector<ReliablePeer> peers() override { return {}; }

  // --- With the baton.

  size_t receive(Time now) override;
  Served transmit(Time now) override;
  bool set_watched(bool watched) override { return link_->set_watched(watched); }

 protected:
  void attach_to_engine();
  void detach_from_engine();

  std::error_code check_send(const SendWorkRequest& request) const noexcept override;
  void on_state(QpState now) override;
  bool report() override;

  // The part of the type itself.

  /// A datagram with a good envelope, on a queue pair that receives.
  virtual void take_datagram(const dgram::OpenedEnvelope& envelope,
                             const llp::IncomingDatagram& datagram, Time now) = 0;
  /// At the end of a batch of datagrams, before what is done is reported.
  virtual void batch_taken(Time /*now*/) {}
  /// Begins anew, with a new identity().
  virtual void start_msns() = 0;
  /// The Q_Key has changed; nothing is received.
  virtual void q_key_changed() {}
  /// Forgets everything of peers, and gives receives back.
  virtual void forget_peers() = 0;
  /// Ends what has timed out. Called at least when next_expiry() says.
  virtual void expire(Time /*now*/) {}
  /// Time::max(): nothing times out.
  virtual Time next_expiry() { return Time::max(); }

  /// Counts, and tells the application and the peer.
  void report_verdict(const Verdict& verdict, const rdmap::DatagramSegment& segment,
                      const llp::IncomingDatagram& datagram, Time now);
  void drop(Counter reason, const Address& from) { logged().add(reason, from); }
  /// There is something to send.
  void wake() final { engine().transmits().activate(*this); }
  Waker& waker() { return *this; }

  dgram::Identity& identity() { return identity_; }
  uint32_t q_key() const { return q_key_; }
  llp::DatagramLink& link() { return *link_; }
  DatagramSender& sender() { return sender_; }
  ControlSender& control() { return control_; }
  ErrorReports& errors() { return errors_; }
  NetworkReports& network() { return network_; }
  RecordTable& records() { return records_; }
  /// Null where its receives get none.
  const RouteHeaders* route_headers() const { return route_headers_.get(); }
  const dgram::AddressValidation& validation() const { return validation_; }

 private:
  std::error_code check_destination(const rdmap::WrInfo& info, const Address& to) const noexcept;
  void handle(const llp::IncomingDatagram& datagram, Time now) final;
  void after_receive(Time now) final;
  void count_degradation(const llp::Degradation& what) final;
  Served send(Time now);
  [[gnu::noinline]] bool report_records();
  Address destination_of(uint32_t group, uint32_t local) const;
  void on_expiry(Time now);
  void on_paced(Time now);
  [[gnu::noinline]] void tell_verdict(const Verdict& verdict, const rdmap::DatagramSegment& segment,
                                      const llp::IncomingDatagram& datagram, Time now);
  void arm_expiry();
  void count_overflow(Time now);
  uint32_t payload_towards(const Address& to);

  std::unique_ptr<llp::DatagramLink> link_;
  const Address address_;
  mutable LoopbackReach loopback_;  // under the post lock
  mutable Address reachable_;       // the same; no group; port 0: none
  uint32_t q_key_;                  // with the baton
  const uint32_t segment_;          // as DatagramOptions has it
  uint64_t max_rate_;
  uint64_t overflowed_ = 0;
  dgram::Identity identity_;
  SourceFilters sources_;
  const dgram::AddressValidation validation_;
  DatagramSender sender_;
  ControlSender control_;
  ErrorReports errors_;
  NetworkReports network_;
  RecordTable records_;
  JoinedGroups groups_;
  std::unique_ptr<RouteHeaders> route_headers_;
  MemberTimer<DatagramQueuePair, &DatagramQueuePair::on_expiry> expiry_{*this};
  MemberTimer<DatagramQueuePair, &DatagramQueuePair::on_paced> paced_{*this};
};

}  // namespace diwarp::rnic
