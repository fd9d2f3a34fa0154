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

#include "base/unique_fd.h"
#include "common/failure.h"

namespace network {

namespace {

constexpr const char* kTunDevice = "/dev/net/tun";

// The kernel gives a TAP device an MTU of at most 65,535 bytes less its header.
constexpr size_t kLargestPacket = 65535;
constexpr size_t kVlanBytes = 4;
constexpr size_t kLargestFrame = kEthernetBytes + kVlanBytes + kLargestPacket;

[[noreturn]] void refuse(const std::string& sentence) { throw diwarp::tools::Failure(sentence); }

void check_name(const std::string& name) {
  if (name.empty() || name.size() >= IFNAMSIZ)
    refuse("A port's device has a name of 1 to " + std::to_string(IFNAMSIZ - 1) +
           " characters, which \"" + name + "\" is not.");
}

diwarp::UniqueFd open_space(const std::string& space) {
  diwarp::UniqueFd file(open(space.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    refuse("The network namespace " + space + " cannot be opened (" + std::strerror(errno) +
           "): name the file of one, such as /run/netns/NAME, which `ip netns add NAME` makes, or "
           "/proc/PID/ns/net.");
  return file;
}

void enter(const std::string& space) {
  const diwarp::UniqueFd file = open_space(space);
  if (setns(file.get(), CLONE_NEWNET) == 0) return;
  if (errno == EINVAL)
    refuse(space +
           " is no network namespace: name the file of one, such as /run/netns/NAME or "
           "/proc/PID/ns/net.");
  if (errno == EPERM)
    refuse("The network namespace " + space +
           " may not be entered: be root, or in the user namespace that it belongs to.");
  refuse("The network namespace " + space + " cannot be entered: " + std::strerror(errno) + ".");
}

diwarp::UniqueFd open_tun() {
  diwarp::UniqueFd file(open(kTunDevice, O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (!file)
    refuse(std::string(kTunDevice) + " cannot be opened (" + std::strerror(errno) +
           "): load the module tun (`modprobe tun`), or let the container have the device.");
  return file;
}

/// Why the kernel makes no such device in the namespace that this thread is in.
[[noreturn]] void refuse_device(const std::string& name, const std::string& space, int error) {
  if (if_nametoindex(name.c_str()) != 0)
    refuse("The network namespace " + space + " has a device " + name +
           " already: choose another name, or remove it (`ip link delete " + name + "` there).");
  if (error == EINVAL) refuse("No device can be called \"" + name + "\": choose another name.");
  if (error == EPERM)
    refuse("No device may be made in the network namespace " + space +
           ": be root, or in the user namespace that it belongs to.");
  refuse("The device " + name + " cannot be made in the network namespace " + space + ": " +
         std::strerror(error) + ".");
}

}  // namespace

Tap::Tap(const std::string& space, const std::string& name) : buffer_(kLargestFrame) {
  check_name(name);
  enter(space);
  diwarp::UniqueFd file = open_tun();
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, sizeof request.ifr_name - 1);
  if (ioctl(file.get(), TUNSETIFF, &request) != 0) refuse_device(name, space, errno);
  fd_ = file.release();
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
