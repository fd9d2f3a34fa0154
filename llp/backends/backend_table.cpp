// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "llp/backend.h"
#include "llp/capture/capture.h"
#include "llp/impairment/impaired_backend.h"
#include "llp/local/local_backend.h"
#include "llp/syscall/syscall_backend.h"
#include "llp/uring/uring_backend.h"

namespace diwarp::llp {
namespace {

// What is captured lies below what is impaired: a capture has what left and what came.

BackendRow decorated_syscall_row() {
  BackendRow row = syscall_row();
  row.open = [](const BackendSetup& setup, std::string& why_not) {
    const bool observed = wants_impairment() || wants_capture(setup.options);
    auto backend = local_as_asked(syscall_row().open(setup, why_not), setup, observed);
    return impaired_as_wanted(captured_as_asked(std::move(backend), setup), setup.counters);
  };
  return row;
}

/// A ring gathers the input of its links, which the decorator that impairs does not pass on.
BackendRow captured_uring_row() {
  BackendRow row = uring_row();
  row.open = [](const BackendSetup& setup, std::string& why_not) -> std::unique_ptr<Backend> {
    if (!wants_impairment()) return captured_as_asked(uring_row().open(setup, why_not), setup);
    why_not = std::string(kImpairVariable) + " impairs what system calls send";
    return nullptr;
  };
  return row;
}

}  // namespace

/// System calls come first, as they are faster in every mode that was measured
/// (docs/performance.md).
std::span<const BackendRow> backend_table() {
  static const std::array rows = {decorated_syscall_row(), captured_uring_row()};
  return rows;
}

}  // namespace diwarp::llp
