// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/local_operation.h"

#include <variant>

namespace diwarp::rnic {

WcStatus do_local(const ddp::ProtectionContext& protection, const SendEntry& entry) {
  const auto* binding = std::get_if<MemoryBinding>(&entry.operands);
  ddp::RegionFault found = ddp::RegionFault::none;
  if (entry.opcode == WrOpcode::local_invalidate)
    found = protection.invalidate(entry.invalidate_stag);
  else if (entry.opcode == WrOpcode::bind_window)
    found = protection.bind(*binding);
  else
    found = protection.register_memory(*binding);
  return found == ddp::RegionFault::none ? WcStatus::success : WcStatus::window_bind_error;
}

}  // namespace diwarp::rnic
