// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_link.h"

#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <array>

#include "llp/socket/busy_poll.h"
#include "llp/socket/interfaces.h"
#include "llp/socket/socket_address.h"
#include "llp/udp/local_addresses.h"
#include "llp/udp/udp_degradations.h"
#include "llp/udp/udp_open.h"

namespace diwarp::llp {
namespace {

/// How many datagrams the socket has had no room for.
uint32_t drops_so_far(int fd) {
  std::array<uint32_t, SK_MEMINFO_VARS> values{};
  socklen_t length = sizeof values;
  if (::getsockopt(fd, SOL_SOCKET, SO_MEMINFO, values.data(), &length) != 0) return 0;
  return values[SK_MEMINFO_DROPS];
}

}  // namespace

std::unique_ptr<UdpLink> UdpLink::open(const Address& local, const UdpOptions& options) {
  UniqueFd fd = bound_udp_socket(local, options.share_port);
  return std::unique_ptr<UdpLink>(new UdpLink(std::move(fd), options));
}

std::unique_ptr<UdpLink> UdpLink::adopt(int bound_descriptor, const UdpOptions& options) {
  return std::unique_ptr<UdpLink>(
      new UdpLink(adoptable_udp_socket(bound_descriptor, options), options));
}

UdpLink::UdpLink(UniqueFd fd, const UdpOptions& options, bool group)
    : fd_(std::move(fd)),
      options_(options),
      local_(local_address_of(fd_.get())),
      // guard(adopted-socket): without || local_.is_multicast() || local_.is_broadcast()
      group_(group || local_.is_multicast() || local_.is_broadcast()),
      reads_destinations_(group_ || local_.is_any()),
      family_(static_cast<sa_family_t>(socket_option(fd_.get(), SOL_SOCKET, SO_DOMAIN))),
      interface_(options.multicast_interface.empty()
                     ? interface_of(local_)
                     : interface_named(options.multicast_interface)),
      locals_(local_.is_any() ? std::make_unique<LocalAddresses>() : nullptr),
      drops_seen_(drops_so_far(fd_.get())),
      path_mtu_(local_, interface_) {
  configure();
  configure_groups();
  configure_buffers();
  configure_offload();
  if (!set_busy_poll(fd_.get(), options_.busy_poll)) fall_back(Counter::busy_poll_refused);
}

UdpLink::~UdpLink() = default;

// None of these is worth failing for: the kernel may have none of them.
void UdpLink::configure() {
  const int fd = fd_.get();
  const UdpOptions& options = options_;
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (options.share_port) set_socket_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
  set_socket_option(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
  set_socket_option(fd, IPPROTO_IP, IP_MTU_DISCOVER,
                    options.fragment ? IP_PMTUDISC_WANT : IP_PMTUDISC_DO);
  if (family_ == AF_INET6) {
    set_socket_option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
                      options.fragment ? IPV6_PMTUDISC_WANT : IPV6_PMTUDISC_DO);
  }
}

void UdpLink::learn_overflow() { count_overflow(drops_so_far(fd_.get())); }

void UdpLink::configure_buffers() {
  const int fd = fd_.get();
  if (!set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options_.receive_buffer))
    fall_back(Counter::rx_buffer_cut);
  if (!set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options_.send_buffer))
    fall_back(Counter::tx_buffer_cut);
}

void UdpLink::configure_offload() {
  if (!options_.offload) return;
  // A segment size of 0 changes nothing: the call only asks whether the kernel knows the option.
  gso_ = set_socket_option(fd_.get(), IPPROTO_UDP, UDP_SEGMENT, 0);
  gro_ = set_socket_option(fd_.get(), IPPROTO_UDP, UDP_GRO, 1);
  if (!gso_) fall_back(Counter::gso_missing);
  if (!gro_) fall_back(Counter::gro_missing);
}

void UdpLink::fall_back(Counter counter) {
  if (has_fallen_back(counter)) return;
  const size_t index = udp_degradation(counter);
  degradations_ |= 1U << index;
  if (on_degradation_) on_degradation_(kUdpDegradations[index]);
}

bool UdpLink::has_fallen_back(Counter counter) const {
  return (degradations_ >> udp_degradation(counter) & 1U) != 0;
}

void UdpLink::on_degradation(std::function<void(const Degradation&)> callback) {
  on_degradation_ = std::move(callback);
  if (!on_degradation_) return;
  for (const Degradation& degradation : kUdpDegradations)
    if (has_fallen_back(degradation.counter)) on_degradation_(degradation);
}

size_t UdpLink::max_datagram(const Address& to) {
  const bool fragments = options_.fragment && !has_fallen_back(Counter::jumbo_refused);
  if (!fragments) return path_mtu_.max_datagram(to);
  return unmapped(to).family() == AddressFamily::ipv4 ? kMaxDatagram : kMaxDatagramIpv6;
}

}  // namespace diwarp::llp
