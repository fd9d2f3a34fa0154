// SPDX-License-Identifier: Apache-2.0
#include "tcp_socket.h"

#include <sys/socket.h>

#include <cstring>

#include "diwarp/error.h"
#include "diwarp/types.h"

namespace diwarp::rnic {

Tcp::endpoint to_endpoint(const Address& address) {
  sockaddr_storage storage;
  const socklen_t length = address.to_sockaddr(storage);
  Tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), &storage, length);
  endpoint.resize(length);
  return endpoint;
}

Tcp protocol_of(int fd) {
  int domain = AF_INET;
  socklen_t length = sizeof domain;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length);
  return domain == AF_INET6 ? Tcp::v6() : Tcp::v4();
}

UniqueFd open_tcp(AddressFamily family) {
  const int domain = family == AddressFamily::ipv4 ? AF_INET : AF_INET6;
  return UniqueFd(::socket(domain, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

UniqueFd release(Tcp::socket& socket) {
  AsioError error;
  const int fd = socket.release(error);
  return UniqueFd(error ? -1 : fd);
}

std::unique_ptr<llp::TcpStream> adopt_stream(UniqueFd fd) {
  try {
    std::unique_ptr<llp::TcpStream> stream = llp::TcpStream::adopt(fd.get());
    fd.release();
    return stream;
  } catch (const Error&) {
    return nullptr;
  }
}

void check_private_data(std::span<const std::byte> data) {
  if (data.size() <= kMaxPrivateData) return;
  throw Error(make_error_code(Errc::invalid_argument), "Private data is at most 512 bytes, not " +
                                                           std::to_string(data.size()) +
                                                           "; send more in a first message");
}

}  // namespace diwarp::rnic
