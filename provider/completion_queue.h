// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "diwarp/attributes.h"
#include "diwarp/types.h"

/// As the public classes of these names.
namespace diwarp::provider {

class CompletionChannel {
 public:
  virtual ~CompletionChannel() = default;

  virtual std::optional<CompletionEvent> get_event(Duration timeout) = 0;
  virtual int descriptor() const = 0;
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;

  virtual size_t poll(std::span<WorkCompletion> completions) = 0;
  virtual size_t poll(std::span<WorkCompletion> completions, Duration timeout) = 0;
  virtual void arm(bool solicited_only) = 0;
  virtual uint32_t entries() const = 0;
};

}  // namespace diwarp::provider
