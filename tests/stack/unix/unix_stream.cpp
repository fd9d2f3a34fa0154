// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

namespace diwarp::test {

namespace {

constexpr size_t kMaxPieces = IOV_MAX;

/// Room for one descriptor.
struct Attached {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> bytes{};

  void attach_to(msghdr& message) {
    message.msg_control = bytes.data();
    message.msg_controllen = bytes.size();
  }
};

/// Whether the message says that the peer has aborted. The descriptors that it carries are closed.
bool is_abort(msghdr& message) {
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return false;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  UniqueFd{fd}.reset();
  return true;
}

void send_abort(int fd) {
  Attached attached;
  char byte = 0;
  iovec piece{&byte, 1};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  attached.attach_to(message);
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

llp::IoResult failure(int error) {
  if (error == EAGAIN || error == ENOBUFS || error == ENOMEM)
    return {llp::IoStatus::would_block, 0, 0};
  return {llp::IoStatus::failed, 0, error};
}

}  // namespace

llp::IoResult UnixStream::send(std::span<const ConstBytes> pieces) {
  if (!fd_) return failure(ECONNABORTED);
  std::array<iovec, kMaxPieces> list;
  size_t count = 0;
  for (const ConstBytes piece : pieces.first(std::min(pieces.size(), kMaxPieces)))
    if (!piece.empty()) list[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  if (count == 0) return {llp::IoStatus::would_block, 0, 0};
  msghdr message{};
  message.msg_iov = list.data();
  message.msg_iovlen = count;
  const ssize_t sent = ::sendmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0) return failure(errno);
  return {llp::IoStatus::ok, static_cast<size_t>(sent), 0};
}

llp::IoResult UnixStream::receive(Bytes buffer) {
  if (!fd_) return failure(ECONNABORTED);
  if (broken_ != 0) return failure(broken_);
  if (buffer.empty()) return {llp::IoStatus::would_block, 0, 0};
  Attached attached;
  iovec piece{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  attached.attach_to(message);
  const ssize_t came = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (came < 0 && errno == ECONNRESET) broken_ = ECONNRESET;
  if (came < 0) return failure(errno);
  if (came == 0) return {llp::IoStatus::closed, 0, 0};
  if (!is_abort(message)) return {llp::IoStatus::ok, static_cast<size_t>(came), 0};
  broken_ = ECONNRESET;  // the last byte says so; those before it came in order
  if (came == 1) return failure(broken_);
  return {llp::IoStatus::ok, static_cast<size_t>(came) - 1, 0};
}

void UnixStream::shutdown_send() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void UnixStream::abort() {
  if (!fd_) return;
  send_abort(fd_.get());
  fd_.reset();
}

}  // namespace diwarp::test
