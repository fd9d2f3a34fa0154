// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/tcp_socket.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "diwarp/error.h"
#include "mpa/startup.h"

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

void check_private_data(std::span<const std::byte> data, bool enhanced) {
  const size_t most = mpa::max_private_data(enhanced ? 2 : 1);
  if (data.size() <= most) return;
  throw Error(make_error_code(Errc::invalid_argument),
              "Private data is at most " + std::to_string(most) + " bytes with revision " +
                  (enhanced ? "2" : "1") + " of MPA, not " + std::to_string(data.size()) +
                  "; send more in a first message");
}

void check_depths(uint16_t ord, uint16_t ird) {
  if (std::max(ord, ird) <= mpa::kMaxDepth) return;
  throw Error(make_error_code(Errc::invalid_argument),
              "ord and ird are at most " + std::to_string(mpa::kMaxDepth) + ", not " +
                  std::to_string(std::max(ord, ird)));
}

Duration bounded_timeout(Duration timeout) {
  constexpr Duration kYear = std::chrono::hours(24 * 365);
  return timeout < Duration::zero() ? kYear : std::min(timeout, kYear);
}

}  // namespace diwarp::rnic
