// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "rnic/context/device_context.h"

namespace diwarp::rnic {

/// The number of an RC queue pair, which is its device's again when this ends. The device outlives
/// it.
class TakenNumber {
 public:
  /// As DeviceContext::take_number().
  TakenNumber(DeviceContext& device, uint32_t chosen)
      : device_(device), number_(device.take_number(chosen)) {}
  ~TakenNumber() { device_.return_number(number_); }
  TakenNumber(const TakenNumber&) = delete;
  TakenNumber& operator=(const TakenNumber&) = delete;

  uint32_t get() const { return number_; }

 private:
  DeviceContext& device_;
  const uint32_t number_;
};

}  // namespace diwarp::rnic
