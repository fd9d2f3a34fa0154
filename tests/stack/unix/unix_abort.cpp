// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_abort.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cstring>

#include "base/unique_fd.h"

namespace diwarp::test {

namespace {

/// A message of one piece, with room for one descriptor.
struct Message {
  Message(void* bytes, size_t size) : piece{bytes, size} {
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec piece;
  msghdr header{};
};

/// Whether the message carries a descriptor, which is closed. Of a process that can have no more
/// descriptors the system keeps it, and says so.
bool carries_descriptor(msghdr& message) {
  if ((message.msg_flags & MSG_CTRUNC) != 0) return true;
  cmsghdr* const attached = CMSG_FIRSTHDR(&message);
  if (attached == nullptr || attached->cmsg_type != SCM_RIGHTS) return false;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(attached), sizeof fd);
  UniqueFd{fd}.reset();
  return true;
}

}  // namespace

void send_unix_abort(int fd) {
  char byte = 0;
  Message message(&byte, 1);
  cmsghdr* const attached = CMSG_FIRSTHDR(&message.header);
  attached->cmsg_level = SOL_SOCKET;
  attached->cmsg_type = SCM_RIGHTS;
  attached->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(attached), &fd, sizeof fd);
  ::sendmsg(fd, &message.header, MSG_DONTWAIT | MSG_NOSIGNAL);
}

UnixInput receive_unix(int fd, Bytes buffer, int flags) {
  Message message(buffer.data(), buffer.size());
  const ssize_t came = ::recvmsg(fd, &message.header, flags | MSG_CMSG_CLOEXEC);
  if (came <= 0 || !carries_descriptor(message.header)) return {came, false};
  return {came - 1, true};  // the last byte is the abort
}

}  // namespace diwarp::test
