// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/bytes.h"

/// Unix-domain streams know no resets. One is a byte that carries a descriptor, which nothing else
/// does.
namespace diwarp::test {

/// Not sent where the stream is full.
void send_unix_abort(int fd);

struct UnixInput {
  ssize_t bytes = 0;     ///< as recv() has it: 0 without an abort is the end, below 0 errno tells
  bool aborted = false;  ///< the peer aborted after these bytes
};
UnixInput receive_unix(int fd, Bytes buffer, int flags = 0);

}  // namespace diwarp::test
