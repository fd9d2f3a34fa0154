// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "diwarp/attributes.h"

namespace diwarp::provider {

/// As the public class of this name.
class EventQueue {
 public:
  virtual ~EventQueue() = default;

  virtual std::optional<AsyncEvent> get_event(Duration timeout) = 0;
  virtual int descriptor() const = 0;
};

}  // namespace diwarp::provider
