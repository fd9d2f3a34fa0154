// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "rnic/context/device_context.h"

namespace diwarp::rnic {

/// The unit that keeps queue pairs and regions together.
class ProtectionDomain {
 public:
  explicit ProtectionDomain(std::shared_ptr<DeviceContext> device)
      : device_(std::move(device)), number_(device_->next_domain()) {}
  const std::shared_ptr<DeviceContext>& device() const { return device_; }
  uint32_t number() const { return number_; }

 private:
  std::shared_ptr<DeviceContext> device_;
  uint32_t number_;
};

}  // namespace diwarp::rnic
