// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iostream>
#include <memory>
#include <string>

#include "llp/tcp/tcp_stream.h"
#include "llp/udp/udp_link.h"
#include "llp/uring/uring_queue.h"
#include "llp/uring/uring_stream.h"
#include "llp/uring/uring_udp_link.h"

/// A case that holds for links over system calls and over io_uring: TestType opens them.
#define BACKENDS_TEST_CASE(name) \
  TEMPLATE_TEST_CASE(name, "", ::diwarp::test::Calls, ::diwarp::test::Ring)

namespace diwarp::test {

struct Calls {
  static std::unique_ptr<llp::UdpLink> open(const Address& local,
                                            const llp::UdpOptions& options = {}) {
    return llp::UdpLink::open(local, options);
  }
  static std::unique_ptr<llp::UdpLink> adopt(int fd, const llp::UdpOptions& options = {}) {
    return llp::UdpLink::adopt(fd, options);
  }
  static std::unique_ptr<llp::TcpStream> connect(int fd) { return llp::TcpStream::adopt(fd); }
};

/// Where there is no io_uring, the case is skipped, and runs over system calls nonetheless.
struct Ring {
  static std::unique_ptr<llp::UdpLink> open(const Address& local,
                                            const llp::UdpOptions& options = {}) {
    if (!queue()) return Calls::open(local, options);
    return llp::UringUdpLink::open(queue(), local, options);
  }
  static std::unique_ptr<llp::UdpLink> adopt(int fd, const llp::UdpOptions& options = {}) {
    if (!queue()) return Calls::adopt(fd, options);
    return llp::UringUdpLink::adopt(queue(), fd, options);
  }
  static std::unique_ptr<llp::TcpStream> connect(int fd) {
    if (!queue()) return Calls::connect(fd);
    return llp::UringStream::adopt(queue(), fd);
  }

  static const std::shared_ptr<llp::UringQueue>& queue() {
    static const auto shared = make({});
    return shared;
  }

  static std::shared_ptr<llp::UringQueue> make(const llp::UringOptions& options) {
    std::string why_not;
    auto made = llp::UringQueue::create(options, why_not);
    if (!made) std::cout << "SKIPPED: no io_uring: " << why_not << "\n";
    return made;
  }
};

}  // namespace diwarp::test
