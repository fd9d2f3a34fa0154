// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_stream.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>

#include "stack/unix/unix_abort.h"

namespace diwarp::test {

namespace {

constexpr size_t kMaxPieces = IOV_MAX;

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
  const UnixInput came = receive_unix(fd_.get(), buffer, MSG_DONTWAIT);
  if (came.aborted || (came.bytes < 0 && errno == ECONNRESET)) broken_ = ECONNRESET;
  if (came.bytes > 0) return {llp::IoStatus::ok, static_cast<size_t>(came.bytes), 0};
  if (came.bytes < 0 || came.aborted) return failure(came.aborted ? broken_ : errno);
  return {llp::IoStatus::closed, 0, 0};
}

void UnixStream::shutdown_send() {
  if (fd_) ::shutdown(fd_.get(), SHUT_WR);
}

void UnixStream::abort() {
  if (!fd_) return;
  send_unix_abort(fd_.get());
  fd_.reset();
}

}  // namespace diwarp::test
