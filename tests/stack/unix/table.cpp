// SPDX-License-Identifier: Apache-2.0
// In this program all devices use Unix-domain sockets.
#include <array>

#include "stack/unix/unix_backend.h"

namespace diwarp::llp {

std::span<const BackendRow> backend_table() {
  static const std::array rows = {test::unix_row()};
  return rows;
}

}  // namespace diwarp::llp
