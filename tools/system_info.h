// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace diwarp::tools {

/// A variable of the kernel's; no value where it cannot be read.
struct SystemLimit {
  std::string name;
  std::optional<uint64_t> value;
};

/// The properties of a system that make a software RNIC fast or slow.
struct SystemInfo {
  std::string kernel;
  unsigned processors = 0;
  unsigned usable_processors = 0;  ///< by this process
  SystemLimit receive_buffer_limit;
  SystemLimit send_buffer_limit;
  std::optional<uint64_t> locked_memory;  ///< bytes that this process may lock; none: no limit
};

SystemInfo system_info();

}  // namespace diwarp::tools
