// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_link.h"

#include <utility>

#include "llp/udp/udp_group.h"
#include "llp/udp/udp_open.h"

namespace diwarp::llp {

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
      sender_(socket_, options),
      receiver_(socket_, options.coalescing) {}

void UdpLink::on_degradation(std::function<void(const Degradation&)> callback) {
  socket_.degradations.on_degradation(std::move(callback));
}

void UdpLink::on_icmp(std::function<void(const IcmpReport&)> callback) {
  socket_.icmp.on_report(std::move(callback));
}

std::unique_ptr<DatagramLink> UdpLink::open_group(const Address& group,
                                                  std::string_view interface) {
  return on_group(open_group_socket(socket_, options_.share_port, group, interface));
}

std::unique_ptr<DatagramLink> UdpLink::on_group(UniqueFd fd) {
  return std::unique_ptr<DatagramLink>(new UdpLink(std::move(fd), options_, true));
}

}  // namespace diwarp::llp
