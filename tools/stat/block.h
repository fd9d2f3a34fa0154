// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters_block.h"

namespace diwarp::tools {

/// One value of a device.
struct Value {
  std::string name;
  counters_block::Kind kind = counters_block::Kind::sum;
  uint64_t value = 0;
};

/// The counters of a device at one moment.
struct DeviceSnapshot {
  uint32_t process = 0;  ///< that opened it, in its own namespace of processes
  uint32_t number = 0;   ///< among the devices of the process
  uint64_t opened = 0;   ///< CLOCK_BOOTTIME, ns
  std::string library;
  std::string address;
  std::vector<Value> values;

  /// 0 where there is no such value.
  uint64_t get(std::string_view name) const;
};

/// A block is not what this program reads. The text goes on after "the counters of process 12 ".
class BadBlock : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The bytes are hostile: any process of the user may have written them. Throws BadBlock.
DeviceSnapshot parse_block(std::span<const std::byte> bytes);

/// Only what a terminal shows as it is; "?" for each other byte.
std::string printable(std::string_view text);

}  // namespace diwarp::tools
