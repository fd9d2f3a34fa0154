// SPDX-License-Identifier: Apache-2.0
#include "compare/plain_socket.h"

#include <diwarp/device.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "common/failure.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

uint16_t port_in(const Json& message) {
  return static_cast<uint16_t>(number_in(message, "port", 1, 65535));
}

/// Tells the other end a port and learns its.
uint16_t exchange_ports(Control& control, uint16_t mine) {
  control.send({{"type", "port"}, {"port", mine}});
  return port_in(control.expect("port"));
}

void connect(int fd, const Address& peer) {
  sockaddr_storage storage{};
  const socklen_t length = peer.to_sockaddr(storage);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&storage), length) != 0) {
    fail_socket("connect");
  }
}

UniqueFd reach(Control& control) {
  const Address peer = control.peer_address().with_port(port_in(control.expect("port")));
  UniqueFd fd = open_socket(peer, SOCK_STREAM);
  connect(fd.get(), peer);
  return fd;
}

UniqueFd await(Control& control) {
  ControlListener listener(control.local_address().with_port(0));
  control.send({{"type", "port"}, {"port", listener.address().port()}});
  return listener.accept(control.timeout());
}

}  // namespace

void fail_socket(const char* what) {
  throw Failure(std::string("A plain socket could not ") + what + ": " + std::strerror(errno) +
                ".");
}

bool would_block(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EINTR); }

UdpPair make_udp_pair(const Place& place, bool connected) {
  Control& control = place.control;
  UdpPair pair;
  pair.fd = bound_socket(control.local_address().with_port(0), SOCK_DGRAM);
  set_receive_buffer(pair.fd.get(), DeviceOptions{}.udp_receive_buffer);
  set_send_buffer(pair.fd.get(), DeviceOptions{}.udp_send_buffer);
  const uint16_t port = exchange_ports(control, local_address_of(pair.fd.get()).port());
  pair.peer = control.peer_address().with_port(port);
  if (connected) connect(pair.fd.get(), pair.peer);
  return pair;
}

UniqueFd make_tcp_connection(const Place& place) {
  UniqueFd fd = place.side == Side::near ? reach(place.control) : await(place.control);
  send_at_once(fd.get());
  return fd;
}

}  // namespace diwarp::tools
