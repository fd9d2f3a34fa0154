// SPDX-License-Identifier: Apache-2.0
// In this program devices that do not say otherwise use io_uring.
#include <array>

#include "llp/syscall/syscall_backend.h"
#include "llp/uring/uring_backend.h"

namespace diwarp::llp {

std::span<const BackendRow> backend_table() {
  static const std::array rows = {uring_row(), syscall_row()};
  return rows;
}

}  // namespace diwarp::llp
