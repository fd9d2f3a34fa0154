// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/tcp_connector.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "llp/socket/socket_address.h"
#include "llp/tcp/tcp_socket.h"
#include "llp/tcp/tcp_stream.h"

namespace diwarp::llp {

namespace {

std::error_code last_error() { return {errno, std::system_category()}; }

bool bind_to(int fd, const Address& local) {
  sockaddr_storage name;
  const socklen_t length = local.to_sockaddr(name);
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0;
}

/// A port of the system's choice is chosen with the peer's address at hand. One that was named may
/// have been used shortly before.
bool bind_source(int fd, const Address& source) {
  if (source.port() == 0)
    set_socket_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
  else
    set_socket_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  return bind_to(fd, source);
}

bool is_chosen(const Address& source) { return !source.is_any() || source.port() != 0; }

/// TCP connects a socket to itself where nobody listens on the port that it has for its own, which
/// may be the system's choice (simultaneous open, RFC 9293 section 3.5).
bool is_own_peer(int fd) { return local_address_of(fd) == peer_address_of(fd); }

/// 0, or an errno; EINPROGRESS while the peer has not answered.
int begin_connect(int fd, const Address& peer) {
  sockaddr_storage name;
  const socklen_t length = peer.to_sockaddr(name);
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&name), length) == 0 ? 0 : errno;
}

class PendingTcp final : public PendingConnection {
 public:
  PendingTcp(UniqueFd fd, const Address& peer)
      : fd_(std::move(fd)), error_(begin_connect(fd_.get(), peer)) {}

  ConnectResult finish() override {
    if (error_ == EINPROGRESS) error_ = outcome();
    if (error_ == EINPROGRESS) return {};
    if (error_ == 0 && is_own_peer(fd_.get())) {
      reset_connection(std::move(fd_));  // the port is free at once for who is to listen there
      error_ = ECONNREFUSED;
    }
    if (error_ != 0) return {.error = {error_, std::system_category()}};
    return {.stream = TcpStream::over(std::move(fd_))};
  }
  int descriptor() const override { return fd_.get(); }

 private:
  /// Without an error the socket may be connected, or on its way still.
  int outcome() const {
    const int error = socket_option(fd_.get(), SOL_SOCKET, SO_ERROR);
    if (error != 0) return error > 0 ? error : errno;
    return peer_address_of(fd_.get()).port() != 0 ? 0 : EINPROGRESS;
  }

  UniqueFd fd_;
  int error_;
};

}  // namespace

UniqueFd open_tcp_socket(AddressFamily family) {
  const int domain = family == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  return UniqueFd(::socket(domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void reset_connection(UniqueFd socket) {
  const linger at_once{1, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

std::unique_ptr<PendingConnection> TcpConnector::connect(const Address& source, const Address& peer,
                                                         std::error_code& error) {
  UniqueFd fd = open_tcp_socket(peer.family());
  const bool ready = fd && (!is_chosen(source) || bind_source(fd.get(), source));
  if (ready) return std::make_unique<PendingTcp>(std::move(fd), peer);
  error = last_error();
  return nullptr;
}

std::unique_ptr<Stream> TcpConnector::adopt(int connected_descriptor) {
  return TcpStream::adopt(connected_descriptor);
}

/// Nothing is sent: connecting a datagram socket only asks for the route.
std::error_code TcpConnector::find_source(const Address& own, const Address& peer,
                                          Address& source) {
  const int domain = peer.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  const UniqueFd probe(::socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe || (!own.is_any() && !bind_to(probe.get(), own.with_port(0)))) return last_error();
  if (begin_connect(probe.get(), peer) != 0) return last_error();
  source = local_address_of(probe.get()).with_port(0);
  return {};
}

}  // namespace diwarp::llp
