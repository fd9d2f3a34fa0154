// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string>

#include "diwarp/error.h"
#include "socket_address.h"

namespace diwarp::llp {
namespace {

constexpr size_t kMaxPieces = IOV_MAX;
constexpr size_t kDefaultSegment = 536;  // RFC 9293 section 3.7.1

/// Why the descriptor cannot serve as a stream; nullptr when it can.
const char* unfit(int fd) {
  const int type = socket_option(fd, SOL_SOCKET, SO_TYPE);
  if (type < 0) return "is no socket";
  if (type != SOCK_STREAM || socket_option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_TCP) {
    return "does not speak TCP";
  }
  if (peer_address_of(fd).port() == 0) return "is not connected";
  return nullptr;
}

IoResult failure(int error) {
  const bool full = error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == ENOMEM;
  if (full) return {IoStatus::would_block, 0, 0};
  return {IoStatus::failed, 0, error};
}

template <class Call>
ssize_t uninterrupted(Call call) {
  ssize_t result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

std::unique_ptr<TcpStream> TcpStream::adopt(int connected_descriptor) {
  if (const char* reason = unfit(connected_descriptor)) {
    throw Error(Errc::invalid_argument, "Descriptor " + std::to_string(connected_descriptor) + " " +
                                            reason + ": give a connected TCP socket");
  }
  return std::unique_ptr<TcpStream>(new TcpStream(UniqueFd(connected_descriptor)));
}

TcpStream::TcpStream(UniqueFd fd)
    : fd_(std::move(fd)), local_(local_address_of(fd_.get())), peer_(peer_address_of(fd_.get())) {
  ::fcntl(fd_.get(), F_SETFL, ::fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
  ::fcntl(fd_.get(), F_SETFD, FD_CLOEXEC);
  set_socket_option(fd_.get(), IPPROTO_TCP, TCP_NODELAY, 1);
}

IoResult TcpStream::send(std::span<const ConstBytes> pieces) {
  if (!fd_) return {IoStatus::failed, 0, ECONNABORTED};
  std::array<iovec, kMaxPieces> gathered;
  size_t count = 0;
  for (ConstBytes piece : pieces) {
    if (count == gathered.size()) break;
    if (!piece.empty()) gathered[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  }
  if (count == 0) return {IoStatus::would_block, 0, 0};
  msghdr header{};
  header.msg_iov = gathered.data();
  header.msg_iovlen = count;
  const ssize_t sent =
      uninterrupted([&] { return ::sendmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_NOSIGNAL); });
  if (sent < 0) return failure(errno);
  return {IoStatus::ok, static_cast<size_t>(sent), 0};
}

IoResult TcpStream::receive(Bytes buffer) {
  if (!fd_) return {IoStatus::failed, 0, ECONNABORTED};
  if (buffer.empty()) return {IoStatus::would_block, 0, 0};
  const ssize_t received =
      uninterrupted([&] { return ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT); });
  if (received < 0) return failure(errno);
  if (received == 0) return {IoStatus::closed, 0, 0};
  return {IoStatus::ok, static_cast<size_t>(received), 0};
}

void TcpStream::shutdown_send() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void TcpStream::abort() {
  if (!fd_) return;
  const linger at_once{1, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  fd_.reset();
}

size_t TcpStream::maximum_segment() const {
  const int segment = fd_ ? socket_option(fd_.get(), IPPROTO_TCP, TCP_MAXSEG) : 0;
  return segment > 0 ? static_cast<size_t>(segment) : kDefaultSegment;
}

}  // namespace diwarp::llp
