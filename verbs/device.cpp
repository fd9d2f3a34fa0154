// SPDX-License-Identifier: Apache-2.0
#include "diwarp/device.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "base/counters.h"
#include "base/unique_fd.h"
#include "diwarp/error.h"
#include "llp/uring/uring.h"
#include "rnic/cm/control.h"
#include "rnic/device.h"
#include "rnic/open_device.h"

namespace diwarp {

namespace {

/// 0, or the errno that tells why `address` cannot be bound. Group and broadcast addresses can be,
/// but nothing can be sent from them.
int judge_local(const Address& address) {
  if (address.is_multicast() || address.is_broadcast()) return EADDRNOTAVAIL;
  sockaddr_storage storage;
  const socklen_t length = address.with_port(0).to_sockaddr(storage);
  const UniqueFd probe(::socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (probe.get() < 0) return errno;
  // As queue pairs do: an address that is none of IPv6's own is not served over IPv6.
  const int on = 1;
  if (storage.ss_family == AF_INET6 && !address.is_any())
    ::setsockopt(probe.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  return ::bind(probe.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 ? 0 : errno;
}

/// A device's address must be one of this host's.
void check_local(const Address& address) {
  const int error = judge_local(address);
  if (error == 0) return;
  throw Error(std::error_code(error, std::system_category()),
              "No device can be opened on " + address.host() +
                  ": give an address of this host (see `ip address`), or 0.0.0.0 or :: for all");
}

}  // namespace

Device Device::open(std::string_view address, const DeviceOptions& options) {
  return open(Address::parse(address), options);
}

Device Device::open(const Address& address, const DeviceOptions& options) {
  check_local(address);
  return Device(rnic::open_device(address, options));
}

Device::Device(std::shared_ptr<rnic::Device> impl) : impl_(std::move(impl)) {}

size_t Device::progress() { return impl_->engine().poll_step(); }

void Device::remove() { impl_->control().announce_removal(); }

Address Device::address() const { return impl_->address(); }

DeviceAttributes Device::query() const { return impl_->query(); }

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return impl_->query_datagram_sockets();
}

std::string Device::why_no_io_uring() { return llp::why_no_uring(); }

std::vector<CounterValue> Device::counters() const {
  const Counters& counters = impl_->counters();
  std::vector<CounterValue> values;
  values.reserve(Counters::count());
  for (size_t index = 0; index < Counters::count(); ++index) {
    const auto counter = static_cast<Counter>(index);
    values.push_back(
        {Counters::name(counter), Counters::description(counter), counters.get(counter)});
  }
  return values;
}

uint64_t Device::counter(std::string_view name) const {
  for (const CounterValue& value : counters())
    if (value.name == name) return value.value;
  return 0;
}

}  // namespace diwarp
