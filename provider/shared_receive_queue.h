// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "diwarp/attributes.h"
#include "diwarp/types.h"

namespace diwarp::provider {

/// As the public class of this name.
class SharedReceiveQueue {
 public:
  virtual ~SharedReceiveQueue() = default;

  /// In order, up to the first that fails; `posted` says how many.
  virtual std::error_code post_recvs(std::span<const ReceiveWorkRequest> requests,
                                     size_t& posted) noexcept = 0;
  virtual void set_limit(uint32_t limit) = 0;
  virtual SharedReceiveQueueAttributes query() = 0;
};

}  // namespace diwarp::provider
