// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstdint>
#include <vector>

namespace diwarp::tools {

/// Queues of 16, 2 SGEs a request, 64 bytes of inline data: what an idle queue pair is measured
/// with.
inline constexpr QueuePairCapacity kIdleCapacity = {.max_send_wr = 16,
                                                    .max_recv_wr = 16,
                                                    .max_send_sge = 2,
                                                    .max_recv_sge = 2,
                                                    .max_inline_data = 64};

/// Queue pairs that nobody uses; of one protection domain and completion queue.
class IdleQueuePairs {
 public:
  IdleQueuePairs(Device& device, QpType type, uint32_t count) : pd_(device), cq_(device, 64) {
    all_.reserve(count);
    for (uint32_t i = 0; i < count; ++i) {
      all_.emplace_back(
          pd_,
          QueuePairInit{.type = type, .send_cq = cq_, .recv_cq = cq_, .capacity = kIdleCapacity});
    }
  }

  const ProtectionDomain& protection_domain() const { return pd_; }
  CompletionQueue& completion_queue() { return cq_; }
  std::vector<QueuePair>& all() { return all_; }

 private:
  ProtectionDomain pd_;
  CompletionQueue cq_;
  std::vector<QueuePair> all_;
};

}  // namespace diwarp::tools
