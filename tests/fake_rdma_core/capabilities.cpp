// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/capabilities.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace fake {
namespace {

/// The names of the abilities, in their order.
constexpr std::array<std::string_view, static_cast<size_t>(Ability::region_invalidate) + 1> kNames =
    {
        "atomics",
        "immediate",
        "memory-windows",
        "srq",
        "resize",
        "fork",
        "copy-on-fork",
        "two-keys",
        "read-sinks",
        "remote-errors",
        "local-errors",
        "iova",
        "local-invalidate",
        "told-invalidations",
        "region-invalidate",
};

constexpr unsigned bit(size_t ability) { return 1u << ability; }
size_t index_of(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return i;
  std::fprintf(stderr, "fake rdma-core: there is no capability %s\n", std::string(name).c_str());
  std::abort();
}

unsigned denied_at_first() {
  unsigned denied = bit(static_cast<size_t>(Ability::read_sinks));
  const char* const variable = std::getenv("FAKE_RDMA_CORE_DENY");
  std::istringstream words(variable == nullptr ? "" : variable);
  for (std::string word; words >> word;) denied |= bit(index_of(word));
  return denied;
}

std::atomic<unsigned>& denials() {
  static std::atomic<unsigned> all{denied_at_first()};
  return all;
}

}  // namespace

bool able(Ability ability) { return (denials() & bit(static_cast<size_t>(ability))) == 0; }

void deny(std::string_view name, bool denied) {
  const unsigned mask = bit(index_of(name));
  if (denied)
    denials() |= mask;
  else
    denials() &= ~mask;
}

void clear_denials() { denials() = denied_at_first(); }

}  // namespace fake
