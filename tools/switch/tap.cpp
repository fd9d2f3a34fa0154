// SPDX-License-Identifier: Apache-2.0
#include "switch/tap.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace network {

namespace {

// The kernel gives a TAP device an MTU of at most 65,535 bytes less its header.
constexpr size_t kLargestPacket = 65535;
constexpr size_t kVlanBytes = 4;
constexpr size_t kLargestFrame = kEthernetBytes + kVlanBytes + kLargestPacket;

int checked(int result, const std::string& what) {
  if (result < 0) throw std::system_error(errno, std::system_category(), what);
  return result;
}

void enter(const std::string& space) {
  const int fd = checked(open(space.c_str(), O_RDONLY | O_CLOEXEC), space);
  const int result = setns(fd, CLONE_NEWNET);
  close(fd);
  checked(result, "setns");
}

}  // namespace

Tap::Tap(const std::string& space, const std::string& name) : buffer_(kLargestFrame) {
  enter(space);
  fd_ = checked(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name.c_str(), sizeof request.ifr_name - 1);
  checked(ioctl(fd_, TUNSETIFF, &request), "TUNSETIFF");
}

Tap::~Tap() {
  if (fd_ >= 0) close(fd_);
}

bool Tap::read(Frame& frame) {
  const ssize_t bytes = ::read(fd_, buffer_.data(), buffer_.size());
  frame.assign(buffer_.begin(), buffer_.begin() + std::max<ssize_t>(bytes, 0));
  return bytes > 0;
}

bool Tap::write(const Frame& frame) const {
  return ::write(fd_, frame.data(), frame.size()) == static_cast<ssize_t>(frame.size());
}

}  // namespace network
