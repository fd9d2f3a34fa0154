// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/cm_ports.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <optional>
#include <vector>

#include "fake_rdma_core/failure.h"

namespace fake {
namespace {

std::mutex mutex;
std::vector<diwarp::Address>& reserved() {
  static auto& all = *new std::vector<diwarp::Address>;
  return all;
}

bool collide(const diwarp::Address& a, const diwarp::Address& b) {
  return a.port() == b.port() && (a == b || a.is_any() || b.is_any());
}

int open_socket(const diwarp::Address& of, int type) {
  const int family = of.family() == diwarp::AddressFamily::ipv4 ? AF_INET : AF_INET6;
  const int descriptor = ::socket(family, type | SOCK_CLOEXEC, 0);
  refuse_if(descriptor < 0, errno);
  return descriptor;
}

diwarp::Address name_of(int descriptor) {
  sockaddr_storage name = {};
  socklen_t length = sizeof name;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &length);
  return diwarp::Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name));
}

/// The address that this host speaks from when it speaks to `peer`.
std::optional<diwarp::Address> source_towards(const diwarp::Address& peer) {
  const int descriptor = open_socket(peer, SOCK_DGRAM);
  sockaddr_storage target = {};
  const socklen_t length = peer.with_port(9).to_sockaddr(target);
  std::optional<diwarp::Address> source;
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&target), length) == 0)
    source = name_of(descriptor);
  ::close(descriptor);
  return source;
}

}  // namespace

PortReservation::PortReservation(const diwarp::Address& local) {
  const std::lock_guard lock(mutex);
  const bool taken = std::any_of(reserved().begin(), reserved().end(), [&](const auto& other) {
    return local.port() != 0 && collide(other, local);
  });
  refuse_if(taken, EADDRINUSE);
  descriptor_ = open_socket(local, SOCK_STREAM);
  const int on = 1;  // the listener's socket has it as well, and may share the port
  ::setsockopt(descriptor_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_storage name = {};
  const socklen_t length = local.to_sockaddr(name);
  if (::bind(descriptor_, reinterpret_cast<const sockaddr*>(&name), length) != 0) {
    const int error = errno;
    ::close(descriptor_);
    refuse(error);
  }
  bound_ = name_of(descriptor_);
  reserved().push_back(bound_);
}

PortReservation::~PortReservation() {
  ::close(descriptor_);
  const std::lock_guard lock(mutex);
  reserved().erase(std::find(reserved().begin(), reserved().end(), bound_));
}

Adapter* adapter_towards(const diwarp::Address& peer) {
  if (Adapter* const own = find_adapter(peer)) return own;  // itself
  const std::optional<diwarp::Address> source = source_towards(peer);
  if (!source) return nullptr;
  if (Adapter* const exact = find_adapter(*source)) return exact;
  for (Adapter* adapter : adapters())
    if (source->is_loopback() && adapter->address.is_loopback()) return adapter;
  return nullptr;
}

}  // namespace fake
