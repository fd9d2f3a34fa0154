// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_socket.h"

#include <fcntl.h>
#include <netinet/in.h>

#include <string>
#include <utility>

#include "llp/socket/busy_poll.h"
#include "llp/socket/interfaces.h"
#include "llp/socket/socket_address.h"
#include "llp/udp/udp_open.h"

namespace diwarp::llp {
namespace {

/// None of these is worth failing for: the kernel may have none of them.
void configure_socket(const UdpSocket& socket, const UdpOptions& options) {
  const int fd = socket.fd.get();
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (options.share_port) set_socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  set_socket_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  set_socket_option(fd, IPPROTO_IP, IP_MTU_DISCOVER,
                    options.fragment ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO);
  if (socket.family == AF_INET6) {
    set_socket_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
                      options.fragment ? IPV6_PMTUDISC_WANT : IPV6_PMTUDISC_DO);
  }
}

/// As with the options above: the kernel may have none of them.
void configure_groups(const UdpSocket& socket, const UdpOptions& options) {
  const int fd = socket.fd.get();
  const int hops = options.multicast_hops;
  const int loopback = options.multicast_loopback ? 1 : 0;
  if (options.broadcast) set_socket_option(fd, SOL_SOCKET, SO_BROADCAST, 1);
  // An IPv6 socket on all addresses serves IPv4 as well, so these are for both families. Without
  // the first a socket hears what any other socket of the host has joined (ip(7)).
  set_socket_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);  // guard(other-groups)
  set_socket_option(fd, IPPROTO_IP, IP_MULTICAST_TTL, hops);
  set_socket_option(fd, IPPROTO_IP, IP_MULTICAST_LOOP, loopback);
  if (socket.interface != 0) set_multicast_interface(fd, AddressFamily::ipv4, socket.interface);
  if (socket.local.is_any()) set_socket_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
  if (socket.family != AF_INET6) return;
  set_socket_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  set_socket_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, hops);
  set_socket_option(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, loopback);
  if (socket.local.is_any()) set_socket_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
  if (socket.interface != 0) set_multicast_interface(fd, AddressFamily::ipv6, socket.interface);
}

void configure_buffers(UdpSocket& socket, const UdpOptions& options) {
  const int fd = socket.fd.get();
  if (!set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.receive_buffer))
    socket.degradations.add(Counter::rx_buffer_cut);
  if (!set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.send_buffer))
    socket.degradations.add(Counter::tx_buffer_cut);
}

uint32_t multicast_interface(const UdpOptions& options, const Address& local) {
  const std::string& name = options.multicast_interface;
  return name.empty() ? interface_of(local) : interface_named(name);
}

}  // namespace

UdpSocket::UdpSocket(UniqueFd bound, const UdpOptions& options, bool for_group)
    : fd(std::move(bound)),
      local(local_address_of(fd.get())),
      interface(multicast_interface(options, local)),
      locals(local.is_any() ? std::make_unique<LocalAddresses>() : nullptr),
      icmp(fd.get()),
      family(static_cast<sa_family_t>(socket_option(fd.get(), SOL_SOCKET, SO_DOMAIN))),
      // guard(adopted-socket): without || local.is_multicast() || local.is_broadcast()
      group(for_group || local.is_multicast() || local.is_broadcast()) {
  configure_socket(*this, options);
  configure_groups(*this, options);
  configure_buffers(*this, options);
  if (!group) icmp.listen(family);  // a group's link sends nothing
  if (!set_busy_poll(fd.get(), options.busy_poll)) degradations.add(Counter::busy_poll_refused);
}

}  // namespace diwarp::llp
