// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "llp/backend.h"
#include "llp/syscall/syscall_backend.h"
#include "llp/uring/uring_backend.h"

namespace diwarp::llp {

/// System calls come first, as they are faster in every mode that was measured
/// (docs/performance.md).
std::span<const BackendRow> backend_table() {
  static const std::array rows = {syscall_row(), uring_row()};
  return rows;
}

}  // namespace diwarp::llp
