// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/unique_fd.h"
#include "llp/datagram_link.h"
#include "llp/udp/udp_options.h"
#include "llp/udp/udp_receiver.h"
#include "llp/udp/udp_sender.h"
#include "llp/udp/udp_socket.h"

namespace diwarp::llp {

/// Datagrams over a UDP socket. Bursts to one destination leave in one system call each 64
/// datagrams; those that are ready are received in as few as the batch has room for. One to a group
/// comes only to the links that open_group() made, never to the link itself.
class UdpLink : public DatagramLink {
 public:
  /// Binds a new socket; port 0 lets the system choose. "::" serves IPv4 as well, other IPv6
  /// addresses do not. Throws Error: Errc::address_in_use, Errc::invalid_argument (no such
  /// multicast interface), or the system's errno.
  static std::unique_ptr<UdpLink> open(const Address& local, const UdpOptions& options = {});

  /// Takes a bound UDP descriptor, which it closes at the end. Throws Error
  /// (Errc::invalid_argument), and leaves it as it is, when it is not one.
  static std::unique_ptr<UdpLink> adopt(int bound_descriptor, const UdpOptions& options = {});

  /// Datagrams of more than 1,024 pieces are refused (EMSGSIZE), as are those that the route or
  /// the system does not let pass. An IPv4 destination works on an IPv6 socket that serves both.
  SendResult send(std::span<const OutgoingDatagram> burst) override { return sender_.send(burst); }

  /// With gro(), `batch` should have slots of at least kMaxDatagram bytes (else coalescing ends)
  /// and room for kMaxTrain datagrams (else a longer train loses its tail, counted as
  /// overflow). A datagram longer than its slot is cut.
  size_t receive(ReceiveBatch& batch) override { return receiver_.receive(batch); }

  size_t max_datagram(const Address& to) override { return sender_.max_datagram(to); }
  Address local_address() const override { return socket_.local; }
  Address address_of(uint32_t number) const override {
    return number != 0 && socket_.locals ? socket_.locals->at(number) : socket_.local;
  }
  uint32_t number_of(const Address& local) override {
    return socket_.locals ? socket_.locals->number_of(local.with_port(0)) : 0;
  }

  /// The group's address is bound with SO_REUSEADDR: all links of this host that open the group on
  /// its port receive. Broadcasts are taken from the one interface only where the system lets the
  /// process bind a socket to it (since Linux 5.7 it does).
  std::unique_ptr<DatagramLink> open_group(const Address& group,
                                           std::string_view interface) override;
  int descriptor() const override { return socket_.fd.get(); }
  void on_degradation(std::function<void(const Degradation&)> callback) override;
  void on_icmp(std::function<void(const IcmpReport&)> callback) override;
  /// Learned from the datagrams that come in, so the last overflow shows with the next datagram, or
  /// where they come one by one for long, with one of the next Coalescing::kCountEach.
  uint64_t overflowed() const override { return receiver_.overflowed(); }

  /// A link at the same address, or of a link at all addresses at that of the destination, on a
  /// socket that is connected to `peer`, a host's: all that it is given to send goes there, and
  /// datagrams from there come to it, not to this link. Null where the system does not let that
  /// be.
  std::unique_ptr<UdpLink> beside(const Destination& peer) const;
  /// Of such a link: datagrams that arrive from the peer from now on go to the other one.
  void turn_away();
  /// Whether receive() would find something.
  bool something_waits() const { return receiver_.something_waits(); }
  /// Makes overflowed() tell all, also what no datagram has told yet.
  void learn_overflow() { receiver_.learn_overflow(); }

  /// Whether the kernel segments (UDP_SEGMENT) and coalesces (UDP_GRO) for this link. The latter it
  /// does while there is something to coalesce.
  bool gso() const { return sender_.gso(); }
  bool gro() const { return receiver_.gro(); }

 protected:
  UdpLink(UniqueFd fd, const UdpOptions& options, bool group = false);

  /// The same kind of link on a socket that receives what is sent to a group.
  virtual std::unique_ptr<DatagramLink> on_group(UniqueFd fd);

  const UdpOptions& options() const { return options_; }
  UdpSender& sender() { return sender_; }
  UdpReceiver& receiver() { return receiver_; }
  UdpDegradations& degradations() { return socket_.degradations; }
  void collect_icmp() { socket_.icmp.collect(); }
  void report_icmp(const IcmpReport& report) const { socket_.icmp.report(report); }

 private:
  const UdpOptions options_;
  UdpSocket socket_;
  UdpSender sender_;
  UdpReceiver receiver_;
};

}  // namespace diwarp::llp
