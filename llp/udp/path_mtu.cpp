// SPDX-License-Identifier: Apache-2.0
#include "llp/udp/path_mtu.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <new>
#include <span>
#include <utility>

#include "base/mapped_address.h"
#include "base/unique_fd.h"
#include "llp/datagram_link.h"
#include "llp/socket/socket_address.h"

namespace diwarp::llp {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kKeep = 60 * kSecond;
constexpr int64_t kKeepUnreachable = kSecond;

constexpr int kUdpHeader = 8;
constexpr int kIpv6Header = 40;

/// The constants that differ between the families.
struct Family {
  int domain;
  int level;
  int option;
  int headers;  // IP and UDP, in bytes
  int safe;     // the bytes that every path carries (RFC 791, RFC 8200 section 5)
  int largest;  // payload
};

constexpr Family kIpv4 = {AF_INET, IPPROTO_IP, IP_MTU, 20 + kUdpHeader, 576, kMaxDatagram};
constexpr Family kIpv6 = {AF_INET6, IPPROTO_IPV6,    IPV6_MTU, kIpv6Header + kUdpHeader,
                          1280,     kMaxDatagramIpv6};

/// The coarse clock is a few times cheaper than the steady one, and milliseconds do here.
int64_t now() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

/// The kernel's path MTU, or -1.
int ask_kernel(const Family& family, const Address& source, uint32_t interface,
               const Address& host) {
  const UniqueFd fd(::socket(family.domain, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return -1;
  set_socket_option(fd.get(), SOL_SOCKET, SO_BROADCAST, 1);
  if (interface != 0) set_multicast_interface(fd.get(), host.family(), interface);
  sockaddr_storage name;
  if (source.family() == host.family() && !source.is_any()) {
    const socklen_t length = source.with_port(0).to_sockaddr(name);
    // Without it the route may be another, still the best guess.
    static_cast<void>(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), length));
  }
  const socklen_t length = host.with_port(1).to_sockaddr(name);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) != 0) return -1;
  return socket_option(fd.get(), family.level, family.option);
}

}  // namespace

PathMtu::Host PathMtu::host_of(const Address& address) {
  Host host;
  const std::span<const uint8_t> bytes = address.bytes();
  if (address.family() == AddressFamily::ipv4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    host.low = word;
    return host;
  }
  std::memcpy(&host.high, bytes.data(), sizeof host.high);
  std::memcpy(&host.low, bytes.data() + sizeof host.high, sizeof host.low);
  host.scope_and_family = uint64_t{address.scope_id()} << 1 | 1;
  return host;
}

PathMtu::Entry& PathMtu::place(const Host& host) {
  if (!table_) return only_;
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;
  const uint64_t mixed = ((host.high * kOdd ^ host.low) * kOdd ^ host.scope_and_family) * kOdd;
  return table_[(mixed >> 32) & (size_ - 1)];
}

void PathMtu::grow() {
  const size_t size = table_ ? size_ * 4 : kFirstTable;
  if (size > kLargestTable) return;
  std::unique_ptr<Entry[]> larger(new (std::nothrow) Entry[size]);
  if (!larger) return;
  const std::unique_ptr<Entry[]> smaller = std::exchange(table_, std::move(larger));
  const size_t old_size = std::exchange(size_, static_cast<uint32_t>(size));
  for (size_t i = 0; i < old_size; ++i) {
    const Entry& moved = smaller ? smaller[i] : only_;
    if (moved.expires != 0) place(moved.host) = moved;
  }
}

size_t PathMtu::max_datagram(const Address& to) {
  const Host host = host_of(to);
  const int64_t time = now();
  Entry& known = place(host);
  if (known.host == host && time < known.expires) return known.payload;
  if (known.host != host && time < known.expires) grow();
  Entry& cached = place(host);
  cached.host = host;
  measure(to, cached);
  return cached.payload;
}

void PathMtu::forget(const Address& to) {
  const Host host = host_of(to);
  Entry& cached = place(host);
  if (cached.host == host) cached.expires = 0;
}

void PathMtu::measure(const Address& to, Entry& entry) const {
  const Address target = unmapped(to);
  const Family& family = target.family() == AddressFamily::ipv4 ? kIpv4 : kIpv6;
  const int mtu = ask_kernel(family, source_, interface_, target);
  // guard(path-mtu): mtu > 0 ? mtu : family.safe => std::max(mtu, family.safe)
  const int carried = mtu > 0 ? mtu : family.safe;
  const int payload = std::clamp(carried - family.headers, 0, family.largest);
  entry.payload = static_cast<size_t>(payload);
  entry.expires = now() + (mtu > 0 ? kKeep : kKeepUnreachable);
}

}  // namespace diwarp::llp
