// SPDX-License-Identifier: Apache-2.0
#include "llp/local/local_socket.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "llp/local/shared_memory.h"
#include "llp/socket/close_elsewhere.h"

#ifndef SO_PEERPIDFD  // since Linux 6.5
#define SO_PEERPIDFD 77
#endif

namespace diwarp::llp {
namespace {

constexpr int kBacklog = 64;
/// Of descriptors that one packet may bring before they are closed: the kernel's own limit.
constexpr size_t kMaxDescriptors = 253;

struct AbstractAddress {
  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const size_t bytes = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* pointer() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length;
};

UniqueFd new_socket() {
  return UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

UniqueFd pidfd_of(int connection, pid_t pid) {
  int fd = -1;
  socklen_t length = sizeof fd;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0) return UniqueFd(fd);
  if (errno != ENOPROTOOPT) return UniqueFd();  // it has ended, and its number may be another's
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

/// Whether the process is of this one's PID namespace. Without /proc nothing tells.
bool shares_pid_namespace(pid_t pid) {
  struct stat own {};
  if (::stat("/proc/self/ns/pid", &own) != 0) return true;
  struct stat other {};
  const std::string name = "/proc/" + std::to_string(pid) + "/ns/pid";
  return ::stat(name.c_str(), &other) == 0 && own.st_dev == other.st_dev &&
         own.st_ino == other.st_ino;
}

/// Takes the first descriptor, if it is one of memory, and closes all others.
UniqueFd take_descriptor(msghdr& header, bool& foreign) {
  UniqueFd first;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
      UniqueFd owned(fd);
      if (!is_memory(fd)) {
        foreign = true;
        close_elsewhere(std::move(owned));
      } else if (!first) {
        first = std::move(owned);
      }
    }
  }
  return first;
}

}  // namespace

std::string local_name(uid_t user, const Address& address, uint32_t number) {
  return "diwarp/1/" + std::to_string(user) + "/" + address.host() + "/" + std::to_string(number);
}

UniqueFd listen_locally(const std::string& name) {
  const AbstractAddress address(name);
  UniqueFd fd = new_socket();
  if (!fd || ::bind(fd.get(), address.pointer(), address.length) != 0) return UniqueFd();
  if (::listen(fd.get(), kBacklog) != 0) return UniqueFd();
  return fd;
}

bool connect_locally(const std::string& name, UniqueFd& socket) {
  const AbstractAddress address(name);
  if (!socket) socket = new_socket();
  return socket && ::connect(socket.get(), address.pointer(), address.length) == 0;
}

UniqueFd accept_locally(int listener) {
  return UniqueFd(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

std::optional<LocalPeerProcess> peer_process(int connection) {
  ucred told{};
  socklen_t length = sizeof told;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &told, &length) != 0) return std::nullopt;
  if (told.pid <= 0) return std::nullopt;
  LocalPeerProcess process{
      .pidfd = pidfd_of(connection, told.pid), .pid = told.pid, .user = told.uid};
  if (!process.pidfd || !shares_pid_namespace(told.pid)) return std::nullopt;
  return process;
}

bool is_hung_up(int connection) {
  pollfd one{.fd = connection, .events = 0, .revents = 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & POLLHUP) != 0;
}

bool has_unread(int connection) {
  int bytes = 0;
  return ::ioctl(connection, FIONREAD, &bytes) != 0 || bytes != 0;
}

bool send_packet(int connection, ConstBytes packet, int descriptor) {
  iovec bytes{.iov_base = const_cast<std::byte*>(packet.data()), .iov_len = packet.size()};
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  if (descriptor >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  }
  return ::sendmsg(connection, &header, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(packet.size());
}

std::optional<ReceivedPacket> receive_packet(int connection, Bytes into) {
  iovec bytes{.iov_base = into.data(), .iov_len = into.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control;
  msghdr header{};
  header.msg_iov = &bytes;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t got = ::recvmsg(connection, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) return std::nullopt;
  ReceivedPacket packet;
  packet.bytes = static_cast<size_t>(got);
  packet.whole = (header.msg_flags & MSG_TRUNC) == 0;
  packet.descriptor = take_descriptor(header, packet.foreign);
  return packet;
}

}  // namespace diwarp::llp
