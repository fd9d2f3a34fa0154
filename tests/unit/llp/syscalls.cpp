// SPDX-License-Identifier: Apache-2.0
#include "unit/llp/syscalls.h"

#include <liburing.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace diwarp::test {

SyscallFaults& syscall_faults() {
  static SyscallFaults faults;
  return faults;
}

void SyscallFaults::reset() {
  send_every = receive_every = one_message = stream_bytes = uring_every = 0;
  send_error = receive_error = train_error = udp_option_error = forced_buffer_error = 0;
  watch_error = busy_poll_error = connected_error = 0;
  zerocopy_error = zerocopy_option_error = 0;
  hide_notices = 0;
  injected = 0;
}

namespace {

std::atomic<uint64_t> sends{0};
std::atomic<uint64_t> receives{0};
std::atomic<uint64_t> submissions{0};

bool fail(int error) {
  if (error == 0) return false;
  ++syscall_faults().injected;
  errno = error;
  return true;
}

bool strikes(std::atomic<uint64_t>& calls, uint32_t every) {
  return every != 0 && ++calls % every == 0;
}

bool send_fails(int flags) {
  const SyscallFaults& faults = syscall_faults();
  if ((flags & MSG_ZEROCOPY) != 0 && fail(faults.zerocopy_error)) return true;
  return strikes(sends, faults.send_every) && fail(faults.send_error);
}

bool receive_fails(int flags = 0) {
  const SyscallFaults& faults = syscall_faults();
  if ((flags & MSG_ERRQUEUE) != 0) return faults.hide_notices != 0 && fail(EAGAIN);
  return strikes(receives, faults.receive_every) && fail(faults.receive_error);
}

bool is_train(const msghdr& header) {
  const cmsghdr* const message = header.msg_controllen == 0 ? nullptr : CMSG_FIRSTHDR(&header);
  return message != nullptr && message->cmsg_level == IPPROTO_UDP &&
         message->cmsg_type == UDP_SEGMENT;
}

bool train_fails(const msghdr& header) {
  return is_train(header) && fail(syscall_faults().train_error);
}

bool connected_fails(const msghdr& header) {
  return header.msg_name == nullptr && fail(syscall_faults().connected_error);
}

bool is_stream(int fd) {
  int type = 0;
  socklen_t length = sizeof type;
  const long done = ::syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &length);
  return done == 0 && type == SOCK_STREAM;
}

/// How many bytes of `wanted` a call may move.
size_t allowance(int fd, size_t wanted) {
  const uint32_t most = syscall_faults().stream_bytes;
  if (most == 0 || wanted <= most || !is_stream(fd)) return wanted;
  ++syscall_faults().injected;
  return most;
}

/// The same message, cut to what may be moved.
class Cut {
 public:
  Cut(int fd, const msghdr& header) : header_(header) {
    size_t wanted = 0;
    for (size_t i = 0; i < header.msg_iovlen; ++i) wanted += header.msg_iov[i].iov_len;
    size_t left = allowance(fd, wanted);
    if (left == wanted) return;
    const size_t count = std::min(header.msg_iovlen, pieces_.size());
    for (size_t i = 0; i < count; ++i) {
      pieces_[i] = header.msg_iov[i];
      pieces_[i].iov_len = std::min(pieces_[i].iov_len, left);
      left -= pieces_[i].iov_len;
    }
    header_.msg_iov = pieces_.data();
    header_.msg_iovlen = count;
  }
  msghdr* get() { return &header_; }

 private:
  msghdr header_;
  std::array<iovec, 1024> pieces_;
};

unsigned messages(unsigned wanted) {
  if (syscall_faults().one_message == 0 || wanted < 2) return wanted;
  ++syscall_faults().injected;
  return 1;
}

}  // namespace
}  // namespace diwarp::test

using namespace diwarp::test;

// The C library's names, which the program's own definitions take.
extern "C" {

ssize_t sendmsg(int fd, const msghdr* header, int flags) {
  if (connected_fails(*header)) return -1;
  if (send_fails(flags) || train_fails(*header)) return -1;
  Cut cut(fd, *header);
  return ::syscall(SYS_sendmsg, fd, cut.get(), flags);
}

int sendmmsg(int fd, mmsghdr* headers, unsigned count, int flags) {
  if (connected_fails(headers[0].msg_hdr)) return -1;
  if (send_fails(flags) || train_fails(headers[0].msg_hdr)) return -1;
  count = messages(count);
  // Those before a message that fails are sent.
  const bool trains_fail = syscall_faults().train_error != 0;
  for (unsigned i = 1; trains_fail && i < count; ++i)
    if (is_train(headers[i].msg_hdr)) count = i;
  return static_cast<int>(::syscall(SYS_sendmmsg, fd, headers, count, flags));
}

ssize_t sendto(int fd, const void* bytes, size_t size, int flags, const sockaddr* to,
               socklen_t to_length) {
  if (send_fails(flags)) return -1;
  return ::syscall(SYS_sendto, fd, bytes, allowance(fd, size), flags, to, to_length);
}

ssize_t send(int fd, const void* bytes, size_t size, int flags) {
  if (fail(syscall_faults().connected_error)) return -1;
  return sendto(fd, bytes, size, flags, nullptr, 0);
}

ssize_t recvmsg(int fd, msghdr* header, int flags) {
  if (receive_fails(flags)) return -1;
  Cut cut(fd, *header);
  const long result = ::syscall(SYS_recvmsg, fd, cut.get(), flags);
  header->msg_namelen = cut.get()->msg_namelen;
  header->msg_controllen = cut.get()->msg_controllen;
  header->msg_flags = cut.get()->msg_flags;
  return result;
}

int recvmmsg(int fd, mmsghdr* headers, unsigned count, int flags, timespec* timeout) {
  if (receive_fails()) return -1;
  return static_cast<int>(::syscall(SYS_recvmmsg, fd, headers, messages(count), flags, timeout));
}

ssize_t recvfrom(int fd, void* bytes, size_t size, int flags, sockaddr* from,
                 socklen_t* from_length) {
  if (receive_fails()) return -1;
  return ::syscall(SYS_recvfrom, fd, bytes, allowance(fd, size), flags, from, from_length);
}

ssize_t recv(int fd, void* bytes, size_t size, int flags) {
  return recvfrom(fd, bytes, size, flags, nullptr, nullptr);
}

// liburing's.
int io_uring_submit(io_uring* ring) {
  if (strikes(submissions, syscall_faults().uring_every) && fail(ENOMEM)) return -ENOMEM;
  return io_uring_submit_and_wait(ring, 0);
}

int setsockopt(int fd, int level, int name, const void* value, socklen_t length) noexcept {
  const SyscallFaults& faults = syscall_faults();
  if (level == IPPROTO_UDP && fail(faults.udp_option_error)) return -1;
  const bool forced = level == SOL_SOCKET && (name == SO_RCVBUFFORCE || name == SO_SNDBUFFORCE);
  if (forced && fail(faults.forced_buffer_error)) return -1;
  const bool busy_poll = level == SOL_SOCKET && name == SO_BUSY_POLL;
  if (busy_poll && fail(faults.busy_poll_error)) return -1;
  const bool zerocopy = level == SOL_SOCKET && name == SO_ZEROCOPY;
  if (zerocopy && fail(faults.zerocopy_option_error)) return -1;
  return static_cast<int>(::syscall(SYS_setsockopt, fd, level, name, value, length));
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && fail(syscall_faults().watch_error)) return -1;
  return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

}  // extern "C"
