// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "llp/backend.h"
#include "llp/capture/capture.h"
#include "llp/syscall/syscall_backend.h"
#include "llp/uring/uring_backend.h"

namespace diwarp::llp {
namespace {

/// The row that `make` gives, of backends that are captured where that is asked for.
template <BackendRow (*make)()>
BackendRow capturable() {
  BackendRow row = make();
  row.open = [](const BackendSetup& setup, std::string& why_not) {
    return captured_as_asked(make().open(setup, why_not), setup);
  };
  return row;
}

}  // namespace

/// System calls come first, as they are faster in every mode that was measured
/// (docs/performance.md).
std::span<const BackendRow> backend_table() {
  static const std::array rows = {capturable<syscall_row>(), capturable<uring_row>()};
  return rows;
}

}  // namespace diwarp::llp
