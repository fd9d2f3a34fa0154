// SPDX-License-Identifier: Apache-2.0
#include "hybrid/hybrid.h"

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "hybrid/device.h"
#include "provider/memory.h"
#include "provider/protection_domain.h"

namespace diwarp::hybrid {

bool has_one_stag(provider::Device& hardware) {
  std::array<std::byte, 64> memory{};
  const auto domain = hardware.make_protection_domain();
  const auto region =
      domain->register_memory(memory, Access::local_write, std::nullopt, std::nullopt);
  return region->registration().lkey == region->registration().rkey;
}

std::shared_ptr<provider::Device> join(Halves<provider::Device> halves, Progress progress) {
  return std::make_shared<Device>(std::move(halves), progress);
}

}  // namespace diwarp::hybrid
