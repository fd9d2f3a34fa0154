// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_link.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <array>
#include <utility>

#include "llp/socket/socket_address.h"
#include "llp/udp/udp_group.h"
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
    : options_(options),
      socket_(std::move(fd), options, group),
      reads_destinations_(socket_.group || socket_.local.is_any()),
      sender_(socket_, options),
      drops_seen_(drops_so_far(socket_.fd.get())) {
  configure_offload();
}

void UdpLink::learn_overflow() { count_overflow(drops_so_far(socket_.fd.get())); }

void UdpLink::configure_offload() {
  if (!options_.offload) return;
  gro_ = set_socket_option(socket_.fd.get(), IPPROTO_UDP, UDP_GRO, 1);
  if (!gro_) socket_.degradations.add(Counter::gro_missing);
}

void UdpLink::on_degradation(std::function<void(const Degradation&)> callback) {
  socket_.degradations.on_degradation(std::move(callback));
}

std::unique_ptr<DatagramLink> UdpLink::open_group(const Address& group,
                                                  std::string_view interface) {
  return on_group(open_group_socket(socket_, options_.share_port, group, interface));
}

std::unique_ptr<DatagramLink> UdpLink::on_group(UniqueFd fd) {
  return std::unique_ptr<DatagramLink>(new UdpLink(std::move(fd), options_, true));
}

}  // namespace diwarp::llp
