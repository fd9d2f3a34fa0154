// SPDX-License-Identifier: Apache-2.0
#include "unit/llp/network_namespace.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <exception>
#include <iostream>
#include <thread>

#include "base/unique_fd.h"
#include "support/catch.h"

namespace diwarp::test {
namespace {

bool interface_request(const char* interface, unsigned long request, ifreq& argument) {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::strncpy(argument.ifr_name, interface, IFNAMSIZ - 1);
  return ::ioctl(fd.get(), request, &argument) == 0;
}

}  // namespace

bool in_network_namespace(const std::function<void()>& body) {
  bool permitted = false;
  std::exception_ptr failure;
  // A namespace belongs to a thread, so the test program's own stays as it is.
  std::thread([&] {
    permitted = ::unshare(CLONE_NEWNET) == 0;
    if (!permitted) return;
    try {
      ifreq request{};
      request.ifr_flags = IFF_UP;
      REQUIRE(interface_request("lo", SIOCSIFFLAGS, request));
      body();
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  if (!permitted) std::cout << "SKIPPED: a network namespace needs CAP_SYS_ADMIN\n";
  return permitted;
}

bool set_mtu(const char* interface, int mtu) {
  ifreq request{};
  request.ifr_mtu = mtu;
  return interface_request(interface, SIOCSIFMTU, request);
}

}  // namespace diwarp::test
