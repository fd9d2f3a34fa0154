// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "diwarp/queue_options.h"
#include "diwarp/types.h"
#include "hybrid/halves.h"
#include "provider/shared_receive_queue.h"

namespace diwarp::hybrid {

class ProtectionDomain;

/// The shared receive queue of one half: that of the first queue pair which is made with it.
/// Receives that are posted before wait here.
class SharedReceiveQueue final : public provider::SharedReceiveQueue {
 public:
  /// Throws Error.
  SharedReceiveQueue(std::shared_ptr<ProtectionDomain> domain,
                     const SharedReceiveQueueOptions& options);

  std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                             size_t& posted) noexcept override;
  void set_limit(uint32_t limit) override;
  SharedReceiveQueueAttributes query() override;

  const ProtectionDomain* domain() const { return domain_.get(); }
  /// The half, for a queue pair that is about to be made. Throws Error: invalid_argument where the
  /// other half serves others already, unsupported_operation where there is none.
  std::shared_ptr<provider::SharedReceiveQueue> half(Half wanted);
  /// A queue pair was made with this half: receives that wait are posted there. Throws Error.
  void decide(Half half);

 private:
  /// A receive that waits.
  struct Waiting {
    uint64_t wr_id;
    std::vector<Sge> sges;
  };

  std::error_code keep(const ReceiveWorkRequest& request);
  void check_free_for(Half wanted) const;
  void hand_over();

  const std::shared_ptr<ProtectionDomain> domain_;
  const SharedReceiveQueueOptions options_;

  std::mutex mutex_;                             // guards what follows
  Halves<provider::SharedReceiveQueue> halves_;  // null where the half has none
  std::optional<Half> half_;
  std::deque<Waiting> waiting_;    // for half_ to be known; at most options_.max_wr
  std::optional<uint32_t> limit_;  // that was set until then
};

}  // namespace diwarp::hybrid
