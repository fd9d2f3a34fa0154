// SPDX-License-Identifier: Apache-2.0
#include "stack/unix/unix_name.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <string_view>

namespace diwarp::test {

namespace {

constexpr std::string_view kPrefix = "diwarp test ";
constexpr size_t kKind = 1 + kPrefix.size();  // behind the 0 that makes a name abstract
constexpr size_t kAddress = kKind + 1;
constexpr size_t kHeader = offsetof(sockaddr_un, sun_path);

/// Of those that systems hand out.
uint16_t drawn_port() {
  thread_local std::minstd_rand random{std::random_device{}()};
  return static_cast<uint16_t>(std::uniform_int_distribution<unsigned>(32768, 60999)(random));
}

Address name_of(int fd, int (*call)(int, sockaddr*, socklen_t*)) {
  UnixName name;
  name.length = sizeof name.name;
  return call(fd, name.get(), &name.length) == 0 ? address_of(name) : Address();
}

bool bind_to(int fd, int type, const Address& address) {
  UnixName name = unix_name(type, address);
  return ::bind(fd, name.get(), name.length) == 0;
}

}  // namespace

UnixName unix_name(int type, const Address& address) {
  UnixName result;
  result.name.sun_family = AF_UNIX;
  sockaddr_storage storage{};
  const socklen_t length = address.to_sockaddr(storage);
  char* const path = result.name.sun_path;
  std::memcpy(path + 1, kPrefix.data(), kPrefix.size());
  path[kKind] = type == SOCK_DGRAM ? 'd' : 's';
  std::memcpy(path + kAddress, &storage, length);
  result.length = static_cast<socklen_t>(kHeader + kAddress + length);
  return result;
}

Address address_of(const UnixName& name) {
  const char* const path = name.name.sun_path;
  if (name.length <= kHeader + kAddress || path[0] != '\0') return {};
  if (std::string_view(path + 1, kPrefix.size()) != kPrefix) return {};
  sockaddr_storage storage{};
  std::memcpy(&storage, path + kAddress, name.length - kHeader - kAddress);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&storage));
}

Address unix_local_address(int fd) { return name_of(fd, ::getsockname); }
Address unix_peer_address(int fd) { return name_of(fd, ::getpeername); }

UniqueFd open_unix(int type) {
  return UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Address bind_unix(int fd, int type, const Address& address) {
  if (fd < 0) return address.with_port(0);  // errno is open_unix()'s
  if (address.port() != 0) return bind_to(fd, type, address) ? address : address.with_port(0);
  for (int tries = 0; tries < 1000; ++tries) {
    const Address chosen = address.with_port(drawn_port());
    if (bind_to(fd, type, chosen)) return chosen;
    if (errno != EADDRINUSE) break;
  }
  return address;
}

}  // namespace diwarp::test
