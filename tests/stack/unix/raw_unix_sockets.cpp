// SPDX-License-Identifier: Apache-2.0
// The test's own peers have Unix-domain sockets.
#include <cerrno>
#include <system_error>

#include "stack/raw_sockets.h"
#include "stack/unix/unix_abort.h"
#include "stack/unix/unix_connector.h"
#include "stack/unix/unix_name.h"

namespace diwarp::test::raw {

namespace {

int type_of(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 ? type : 0;
}

}  // namespace

UniqueFd open(Kind kind, AddressFamily /*family*/) {
  const int type = kind == Kind::stream ? SOCK_STREAM : SOCK_DGRAM;
  return UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
}

bool bind(int fd, const Address& local) { return bind_unix(fd, type_of(fd), local).port() != 0; }

bool connect(int fd, const Address& to) {
  const bool bound = unix_local_address(fd).port() != 0;
  if (!bound && !bind(fd, Address::loopback(to.family()))) return false;
  UnixName name = unix_name(SOCK_STREAM, to);
  return ::connect(fd, name.get(), name.length) == 0;
}

bool send_to(int fd, const Address& to, std::span<const std::byte> datagram) {
  UnixName name = unix_name(SOCK_DGRAM, to);
  return ::sendto(fd, datagram.data(), datagram.size(), 0, name.get(), name.length) ==
         static_cast<ssize_t>(datagram.size());
}

Address address_of(int fd) {
  const Address address = unix_local_address(fd);
  if (address.port() == 0)
    throw std::system_error(EINVAL, std::generic_category(), "a plain Unix-domain socket");
  return address;
}

Received receive(int fd, std::span<std::byte> buffer) {
  const UnixInput came = receive_unix(fd, buffer);
  if (came.bytes < 0) return {0, Ending::reset};
  const Ending without_bytes = came.bytes == 0 ? Ending::in_order : Ending::none;
  return {static_cast<size_t>(came.bytes), came.aborted ? Ending::reset : without_bytes};
}

void reset(UniqueFd stream) { send_unix_abort(stream.get()); }

std::unique_ptr<llp::Stream> adopt(UniqueFd stream) {
  return UnixConnector().adopt(stream.release());
}

}  // namespace diwarp::test::raw
