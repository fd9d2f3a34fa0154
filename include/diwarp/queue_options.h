// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// How large queues are.
namespace diwarp {

/// How large a queue pair is. Queue depths are rounded up to a power of two.
struct QueuePairCapacity {
  uint32_t max_send_wr = 128;
  uint32_t max_recv_wr = 128;
  uint32_t max_send_sge = 4;
  uint32_t max_recv_sge = 4;
  uint32_t max_inline_data = 64;  ///< bytes
};

struct SharedReceiveQueueOptions {
  uint32_t max_wr = 256;  ///< rounded up to a power of two
  uint32_t max_sge = 4;
  uint32_t limit = 0;    ///< when fewer are posted, one srq_limit_reached event; 0: none
  uint64_t context = 0;  ///< comes back in its events
};

}  // namespace diwarp
