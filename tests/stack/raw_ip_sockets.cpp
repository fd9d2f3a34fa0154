// SPDX-License-Identifier: Apache-2.0
// The test's own peers have the kernel's TCP and UDP.
#include <sys/socket.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "llp/tcp/tcp_stream.h"
#include "stack/raw_sockets.h"

namespace diwarp::test::raw {

namespace {

struct Name {
  explicit Name(const Address& address) { length = address.to_sockaddr(storage); }
  Name() = default;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }

  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
};

}  // namespace

UniqueFd open(Kind kind, AddressFamily family) {
  const int domain = family == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  const int type = kind == Kind::stream ? SOCK_STREAM : SOCK_DGRAM;
  return UniqueFd(::socket(domain, type | SOCK_CLOEXEC, 0));
}

bool bind(int fd, const Address& local) {
  Name name(local);
  return ::bind(fd, name.get(), name.length) == 0;
}

bool connect(int fd, const Address& to) {
  Name name(to);
  return ::connect(fd, name.get(), name.length) == 0;
}

bool send_to(int fd, const Address& to, std::span<const std::byte> datagram) {
  Name name(to);
  return ::sendto(fd, datagram.data(), datagram.size(), 0, name.get(), name.length) ==
         static_cast<ssize_t>(datagram.size());
}

Address address_of(int fd) {
  Name name;
  if (::getsockname(fd, name.get(), &name.length) != 0)
    throw std::system_error(errno, std::generic_category(), "a plain socket");
  return Address::from_sockaddr(name.get());
}

Received receive(int fd, std::span<std::byte> buffer) {
  const ssize_t came = ::recv(fd, buffer.data(), buffer.size(), 0);
  if (came < 0) return {0, Ending::reset};
  return {static_cast<size_t>(came), came == 0 ? Ending::in_order : Ending::none};
}

void reset(UniqueFd stream) {
  const linger at_once{1, 0};
  ::setsockopt(stream.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

std::unique_ptr<llp::Stream> adopt(UniqueFd stream) {
  return llp::TcpStream::adopt(stream.release());
}

}  // namespace diwarp::test::raw
