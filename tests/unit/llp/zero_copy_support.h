// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace diwarp::test {

/// Whether TCP sends so many bytes without copying (MSG_ZEROCOPY) for this process. ENOBUFS where
/// it may not lock so much memory; 0: it does.
inline int zero_copy_refusal(size_t bytes) {
  const auto tcp = [] { return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)); };
  const UniqueFd listener = tcp();
  const UniqueFd sender = tcp();
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  socklen_t length = sizeof name;
  const int on = 1;
  const bool connected = ::bind(listener.get(), address, length) == 0 &&
                         ::listen(listener.get(), 1) == 0 &&
                         ::getsockname(listener.get(), address, &length) == 0 &&
                         ::connect(sender.get(), address, length) == 0;
  if (!connected || ::setsockopt(sender.get(), SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on) != 0)
    return errno;
  const std::vector<std::byte> memory(bytes);
  constexpr int kFlags = MSG_ZEROCOPY | MSG_DONTWAIT | MSG_NOSIGNAL;
  return ::send(sender.get(), memory.data(), memory.size(), kFlags) < 0 ? errno : 0;
}

/// Enough for each case of zero-copy sends, else prints that the case is skipped.
inline bool may_send_zero_copy() {
  constexpr size_t kEnough = size_t{1} << 20;
  const int refusal = zero_copy_refusal(kEnough);
  if (refusal == 0) return true;
  std::cout << "SKIPPED: no zero-copy sends (MSG_ZEROCOPY) of 1 MiB: "
            << (refusal == ENOBUFS ? "raise the limit of locked memory (ulimit -l)"
                                   : "errno " + std::to_string(refusal))
            << "\n";
  return false;
}

}  // namespace diwarp::test
