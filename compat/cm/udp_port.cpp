// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/udp_port.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "compat/common/addresses.h"
#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

constexpr uint16_t kDiscard = 9;  // connect() wants a port, and sends nothing

/// A descriptor that is closed unless it is released.
class Socket {
 public:
  explicit Socket(AddressFamily family)
      : descriptor_(::socket(family == AddressFamily::ipv4 ? AF_INET : AF_INET6,
                             SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    refuse_by_errno_if(descriptor_ < 0);
  }
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

int bound_socket(const Address& address) {
  Socket socket(address.family());
  const int on = 1;
  if (address.family() == AddressFamily::ipv6)
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  sockaddr_storage name{};
  const socklen_t length = address.to_sockaddr(name);
  refuse_by_errno_if(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0);
  return socket.release();
}

Address name_of(int descriptor) {
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  refuse_by_errno_if(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length) != 0);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name));
}

}  // namespace

UdpPort::UdpPort(const Address& address)
    : socket_(bound_socket(address)), address_(name_of(socket_)) {}

UdpPort::~UdpPort() {
  if (socket_ >= 0) ::close(socket_);
}

Address source_towards(const Address& peer) {
  const Socket socket(peer.family());
  sockaddr_storage name{};
  const socklen_t length = peer.with_port(kDiscard).to_sockaddr(name);
  refuse_by_errno_if(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), length) !=
                     0);
  return name_of(socket.get()).with_port(0);
}

std::string interface_of(const Address& address) {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (length_of(one->ifa_addr) == 0) continue;
    const Address own = Address::from_sockaddr(one->ifa_addr);
    if (own.family() == address.family() && std::ranges::equal(own.bytes(), address.bytes()))
      return one->ifa_name;
  }
  return {};
}

}  // namespace diwarp::compat
