// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <span>

#include "llp/network_order.h"

namespace diwarp::llp {

/// A call that sends or receives, made again while signals interrupt it.
template <class Call>
ssize_t uninterrupted(Call call) {
  order_by_network();
  ssize_t result = call();
  while (result < 0 && errno == EINTR) result = call();
  order_by_network();
  return result;
}

/// Sends what there is room for. A single piece does without a header to read.
inline ssize_t send_list(int fd, std::span<iovec> list, int more_flags = 0) {
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | more_flags;
  return uninterrupted([&] {
    if (list.size() == 1) return ::send(fd, list[0].iov_base, list[0].iov_len, flags);
    msghdr header{};
    header.msg_iov = list.data();
    header.msg_iovlen = list.size();
    return ::sendmsg(fd, &header, flags);
  });
}

}  // namespace diwarp::llp
