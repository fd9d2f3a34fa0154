// SPDX-License-Identifier: Apache-2.0
// In this program datagrams go through shared memory, or not at all.
#include <array>

#include "llp/local/local_backend.h"
#include "llp/syscall/syscall_backend.h"

namespace diwarp::llp {

std::span<const BackendRow> backend_table() {
  static const std::array rows = [] {
    BackendRow row = syscall_row();
    row.open = [](const BackendSetup& setup, std::string& why_not) {
      DeviceOptions required = setup.options;
      required.local = LocalPath::require;
      return local_as_asked(syscall_row().open(setup, why_not),
                            {required, setup.counters, setup.address, setup.clock}, false);
    };
    return std::array{row};
  }();
  return rows;
}

}  // namespace diwarp::llp
