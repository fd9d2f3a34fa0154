// SPDX-License-Identifier: Apache-2.0
// Protection domains, memory regions and windows.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <limits>

#include "drop_in/random/world.h"

namespace random_calls {
namespace {

constexpr size_t kMostDomains = 5;
constexpr size_t kMostRegions = 24;
constexpr size_t kMostWindows = 6;

bool alloc_domain(World& world) {
  if (world.contexts.empty() || world.domains.size() >= kMostDomains) return false;
  ibv_pd* const made = ibv_alloc_pd(world.random.one_of(world.contexts));
  if (made_or_errno(made)) world.domains.push_back(made);
  return made != nullptr;
}

bool is_used(const World& world, const ibv_pd* domain) {
  const auto of_domain = [domain](const auto* object) { return object->pd == domain; };
  return std::ranges::any_of(world.all_queue_pairs(), of_domain) ||
         std::ranges::any_of(world.shared_queues, of_domain) ||
         std::ranges::any_of(world.handles, of_domain) ||
         std::ranges::any_of(world.windows, of_domain) ||
         std::ranges::any_of(world.ids, [domain](const rdma_cm_id* id) {
           return id->srq != nullptr && id->srq->pd == domain;
         });
}

/// Regions that are left need not keep it (docs/drop-in.md): they go at once then.
bool dealloc_domain(World& world) {
  if (world.domains.empty()) return false;
  ibv_pd* const domain = world.random.one_of(world.domains);
  const auto of_domain = [domain](const ibv_mr* region) { return region->pd == domain; };
  const bool used = is_used(world, domain);
  const bool has_regions = std::ranges::any_of(world.regions, of_domain);
  const int code = ibv_dealloc_pd(domain);
  require(!used || code == EBUSY, "a domain was deallocated while it was used");
  require(used || has_regions || code == 0, "a domain could not be deallocated");
  if (!succeeded(code)) return false;
  // They are sorted out while all of them are there: one that is gone is not looked at.
  const auto left =
      std::partition(world.regions.begin(), world.regions.end(), std::not_fn(of_domain));
  std::for_each(left, world.regions.end(), [](ibv_mr* region) {
    require(ibv_dereg_mr(region) == 0, "a region that was left stays");
  });
  world.regions.erase(left, world.regions.end());
  remove(world.domains, domain);
  require(ibv_dealloc_pd(domain) == EINVAL, "a domain was deallocated twice");
  return true;
}

struct Place {
  void* address;
  size_t length;
};

Place some_place(World& world) {
  Randomness& random = world.random;
  const auto shared = world.memory.shared();
  const size_t from = random.below(shared.size() / 2);
  switch (random.below(10)) {
    case 0:
      return {nullptr, random.below(3) * 4096};
    case 1:
      return {reinterpret_cast<void*>(uintptr_t{0x1000}), 4096};  // nothing is mapped there
    case 2:
      return {world.memory.read_only().data(), world.memory.read_only().size()};
    case 3:
      return {shared.data() + from,
              std::numeric_limits<size_t>::max() - random.below(2 * from + 1)};
    case 4:
      return {shared.data(), 0};
    default:
      return {shared.data() + from, 1 + random.below(shared.size() / 2)};
  }
}

int some_rights(World& world) {
  if (world.random.chance(60))
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  return static_cast<int>(world.random.below(256)) | (world.random.chance(10) ? 1 << 20 : 0) |
         (world.random.chance(5) ? 1 << 12 : 0);
}

bool reg_region(World& world) {
  if (world.domains.empty() || world.regions.size() >= kMostRegions) return false;
  ibv_pd* const domain = world.random.one_of(world.domains);
  const Place place = some_place(world);
  const int rights = some_rights(world);
  ibv_mr* const made =
      world.random.chance(80)
          ? ibv_reg_mr(domain, place.address, place.length, rights)
          : ibv_reg_mr_iova(domain, place.address, place.length,
                            world.random.one_of<uint64_t>({0, 4096, ~uint64_t{0}}), rights);
  if (!made_or_errno(made)) return false;
  require(place.length != 0 && place.length < uint64_t{1} << 32,
          "impossible memory was registered");
  world.regions.push_back(made);
  return true;
}

bool dereg_region(World& world) {
  if (world.regions.empty()) return false;
  ibv_mr* const region = world.random.one_of(world.regions);
  require(ibv_dereg_mr(region) == 0, "a region stays");
  remove(world.regions, region);
  require(ibv_dereg_mr(region) == EINVAL, "a region was deregistered twice");
  return true;
}

bool rereg_region(World& world) {
  if (world.regions.empty()) return false;
  return ibv_rereg_mr(world.random.one_of(world.regions), 0, nullptr, nullptr, 0, 0) == 0;
}

bool alloc_window(World& world) {
  if (world.domains.empty() || world.windows.size() >= kMostWindows) return false;
  const auto type = static_cast<ibv_mw_type>(world.random.one_of({2, 2, 2, 0, 1, 3}));
  ibv_mw* const made = ibv_alloc_mw(world.random.one_of(world.domains), type);
  require(made == nullptr || type == IBV_MW_TYPE_2, "there is a window of a type that is none");
  if (made_or_errno(made)) world.windows.push_back(made);
  return made != nullptr;
}

/// The header's function looks at the window: it cannot be called twice.
bool dealloc_window(World& world) {
  if (world.windows.empty()) return false;
  ibv_mw* const window = world.random.one_of(world.windows);
  require(ibv_dealloc_mw(window) == 0, "a window stays");
  remove(world.windows, window);
  return true;
}

constexpr std::array kCalls{
    Call{"ibv_alloc_pd", 6, alloc_domain},     Call{"ibv_dealloc_pd", 4, dealloc_domain},
    Call{"ibv_reg_mr", 14, reg_region},        Call{"ibv_dereg_mr", 7, dereg_region},
    Call{"ibv_rereg_mr", 1, rereg_region},     Call{"ibv_alloc_mw", 4, alloc_window},
    Call{"ibv_dealloc_mw", 2, dealloc_window},
};

}  // namespace

std::span<const Call> memory_calls() { return kCalls; }

}  // namespace random_calls
