// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/udp_support.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "llp/socket/socket_address.h"

namespace diwarp::llp {
namespace {

constexpr int kBusyPollMicroseconds = 50;

/// Whether the option can be set, and what the system says where it cannot.
OffloadAttributes ask(int fd, int level, int name, int value) {
  if (set_socket_option(fd, level, name, value)) return {.available = true};
  return {.available = false, .refusal = std::generic_category().message(errno)};
}

/// What a socket may hold; the kernel tells twice that.
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

DatagramSocketAttributes ask_udp_support(const Address& local, const UdpOptions& options) {
  DatagramSocketAttributes result;
  UdpOptions asked = options;
  asked.offload = true;
  const auto link = UdpLink::open(local.with_port(0), asked);
  const int fd = link->descriptor();
  result.segmentation = ask(fd, IPPROTO_UDP, UDP_SEGMENT, 0);
  if (result.segmentation.available) result.segmentation = try_segmentation(*link);
  result.coalescing = ask(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (!options.offload) {
    const char* const off = "the device was opened without (DeviceOptions::offload)";
    result.segmentation = result.coalescing = {.available = false, .refusal = off};
  }
  result.busy_poll = ask(fd, SOL_SOCKET, SO_BUSY_POLL, kBusyPollMicroseconds);
  result.tells_overflow = socket_option(fd, SOL_SOCKET, SO_RXQ_OVFL) == 1;
  result.receive_buffer = {.asked = options.receive_buffer, .granted = granted(fd, SO_RCVBUF)};
  result.send_buffer = {.asked = options.send_buffer, .granted = granted(fd, SO_SNDBUF)};
  return result;
}

}  // namespace diwarp::llp
