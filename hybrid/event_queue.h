// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "base/readiness.h"
#include "hybrid/halves.h"
#include "provider/event_queue.h"

namespace diwarp::hybrid {

class Device;

/// The events of both halves.
class EventQueue final : public provider::EventQueue {
 public:
  /// Throws Error.
  explicit EventQueue(std::shared_ptr<Device> device);

  std::optional<AsyncEvent> get_event(Duration timeout) override;
  int descriptor() const override { return readiness_.descriptor(); }

 private:
  std::optional<AsyncEvent> take();

  const std::shared_ptr<Device> device_;
  const Halves<provider::EventQueue> halves_;
  Readiness readiness_;
};

}  // namespace diwarp::hybrid
