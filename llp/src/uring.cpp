// SPDX-License-Identifier: Apache-2.0
#include "llp/uring.h"

#include <liburing.h>

namespace diwarp::llp {
namespace {

bool probe() {
  io_uring ring;
  if (io_uring_queue_init(2, &ring, 0) != 0) return false;
  io_uring_queue_exit(&ring);
  return true;
}

}  // namespace

bool io_uring_available() {
  static const bool available = probe();
  return available;
}

}  // namespace diwarp::llp
