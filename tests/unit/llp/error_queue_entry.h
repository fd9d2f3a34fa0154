// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstring>

#include "base/bytes.h"

namespace diwarp::test {

/// An entry of a socket's error queue: control messages that lie one after the other as the kernel
/// puts them.
class ErrorQueueEntry {
 public:
  ErrorQueueEntry& add(int level, int type, ConstBytes contents) {
    auto* const message = reinterpret_cast<cmsghdr*>(control_.data() + used_);
    message->cmsg_level = level;
    message->cmsg_type = type;
    message->cmsg_len = CMSG_LEN(contents.size());
    std::memcpy(CMSG_DATA(message), contents.data(), contents.size());
    used_ += CMSG_SPACE(contents.size());
    return *this;
  }

  /// As recvmsg() returns it. It names this object's memory.
  msghdr header() {
    msghdr header{};
    header.msg_control = control_.data();
    header.msg_controllen = used_;
    return header;
  }

 private:
  alignas(cmsghdr) std::array<std::byte, 512> control_{};
  size_t used_ = 0;
};

}  // namespace diwarp::test
