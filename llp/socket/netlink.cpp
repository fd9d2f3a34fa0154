// SPDX-License-Identifier: Apache-2.0
#include "llp/socket/netlink.h"

#include <sys/socket.h>

#include "base/unique_fd.h"

namespace diwarp::llp {

ConstBytes ask_netlink(int protocol, ConstBytes question, Bytes answer) {
  const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
  if (!netlink) return {};
  const ssize_t asked = ::send(netlink.get(), question.data(), question.size(), 0);
  if (asked != static_cast<ssize_t>(question.size())) return {};
  const ssize_t got = ::recv(netlink.get(), answer.data(), answer.size(), MSG_DONTWAIT);
  return got <= 0 ? ConstBytes() : ConstBytes(answer).first(static_cast<size_t>(got));
}

}  // namespace diwarp::llp
