// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_device.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/unique_fd.h"
#include "llp/socket/socket_address.h"

namespace diwarp::llp {
namespace {

constexpr int kBusyPollMicroseconds = 50;

/// Whether the option can be set, and what the system says where it cannot.
OffloadAttributes ask(int fd, int level, int name, int value) {
  if (set_socket_option(fd, level, name, value)) return {.available = true};
  return {.available = false, .refusal = std::generic_category().message(errno)};
}

OffloadAttributes switched_off(const char* option) {
  return {.available = false,
          .refusal = std::string("the device was opened without (DeviceOptions::") + option + ")"};
}

/// The bytes that a socket may hold; the kernel tells twice that.
size_t granted(int fd, int name) {
  return static_cast<size_t>(std::max(socket_option(fd, SOL_SOCKET, name), 0)) / 2;
}

/// Sends a train to the link itself: sandboxes and devices refuse that only when it is tried.
OffloadAttributes try_segmentation(UdpLink& link) {
  const std::array<std::byte, 2> bytes{};
  const std::array pieces = {ConstBytes(bytes).first(1), ConstBytes(bytes).last(1)};
  Address to = link.local_address();
  if (to.is_any()) to = Address::loopback(to.family(), to.port());
  const std::array<OutgoingDatagram, 2> train = {OutgoingDatagram{to, {&pieces[0], 1}},
                                                 OutgoingDatagram{to, {&pieces[1], 1}}};
  static_cast<void>(link.send(train));
  if (link.gso()) return {.available = true};
  return {.available = false, .refusal = "the system refuses to segment when it is asked to"};
}

}  // namespace

UdpOptions udp_options(const DeviceOptions& device) {
  return {.receive_buffer = device.udp_receive_buffer,
          .send_buffer = device.udp_send_buffer,
          .segmentation = device.udp_segmentation,
          .coalescing = device.udp_coalescing,
          .busy_poll = device.busy_poll};
}

UdpOptions udp_options(const DeviceOptions& device, const DatagramOptions& datagram) {
  UdpOptions udp = udp_options(device);
  udp.fragment = datagram.jumbo;
  udp.share_port = datagram.share_port;
  udp.multicast_hops = datagram.group.hops;
  udp.multicast_loopback = datagram.group.loopback;
  udp.multicast_interface = datagram.group.interface;
  return udp;
}

std::string describe_udp(std::string_view mover, const DeviceOptions& device) {
  const std::string plain = "UDP " + std::string(mover);
  if (device.udp_segmentation && device.udp_coalescing)
    return plain + ", with UDP_SEGMENT and UDP_GRO where the kernel has them";
  if (device.udp_segmentation) return plain + ", with UDP_SEGMENT where the kernel has it";
  if (device.udp_coalescing) return plain + ", with UDP_GRO where the kernel has it";
  return plain;
}

int check_udp_address(const Address& address) {
  if (address.is_multicast() || address.is_broadcast()) return EADDRNOTAVAIL;
  sockaddr_storage storage;
  const socklen_t length = address.with_port(0).to_sockaddr(storage);
  const UniqueFd probe(::socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) return errno;
  // As queue pairs do: an address that is none of IPv6's own is not served over IPv6.
  if (storage.ss_family == AF_INET6 && !address.is_any())
    set_socket_option(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return ::bind(probe.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 ? 0 : errno;
}

DatagramSocketAttributes ask_udp_support(const Address& local, const UdpOptions& options) {
  DatagramSocketAttributes result;
  UdpOptions asked = options;
  asked.segmentation = asked.coalescing = true;
  const auto link = UdpLink::open(local.with_port(0), asked);
  const int fd = link->descriptor();
  result.segmentation = ask(fd, IPPROTO_UDP, UDP_SEGMENT, 0);
  if (result.segmentation.available) result.segmentation = try_segmentation(*link);
  result.coalescing = ask(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (!options.segmentation) result.segmentation = switched_off("udp_segmentation");
  if (!options.coalescing) result.coalescing = switched_off("udp_coalescing");
  result.busy_poll = ask(fd, SOL_SOCKET, SO_BUSY_POLL, kBusyPollMicroseconds);
  result.tells_overflow = socket_option(fd, SOL_SOCKET, SO_RXQ_OVFL) == 1;
  result.receive_buffer = {.asked = options.receive_buffer, .granted = granted(fd, SO_RCVBUF)};
  result.send_buffer = {.asked = options.send_buffer, .granted = granted(fd, SO_SNDBUF)};
  return result;
}

}  // namespace diwarp::llp
