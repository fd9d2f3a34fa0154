// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/memory.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <deque>
#include <mutex>
#include <optional>
#include <span>

#include "fake_rdma_core/capabilities.h"

namespace fake {
namespace {

constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                                  IBV_ACCESS_MW_BIND | IBV_ACCESS_OPTIONAL_RANGE;
constexpr unsigned kNeedsLocalWrite = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

std::atomic<bool> fork_initialized{false};
std::atomic<bool> registered_before{false};  // memory, before ibv_fork_init()

diwarp::Access region_access(unsigned flags) {
  const bool wrong = (flags & kNeedsLocalWrite) != 0 && (flags & IBV_ACCESS_LOCAL_WRITE) == 0;
  refuse_if(wrong, EINVAL);
  const bool by_peers = able(Ability::region_invalidate);
  return by_peers ? access_of(flags) | diwarp::Access::remote_invalidate : access_of(flags);
}

std::mutex keys_mutex;
std::deque<uint32_t> chosen_keys;  // guarded by keys_mutex

std::optional<uint32_t> next_chosen_key() {
  const std::lock_guard lock(keys_mutex);
  if (chosen_keys.empty()) return std::nullopt;
  const uint32_t key = chosen_keys.front();
  chosen_keys.pop_front();
  return key;
}

diwarp::MemoryRegion inner_region(const Pd& pd, std::span<std::byte> memory, diwarp::Access access,
                                  uint64_t base) {
  if (const std::optional<uint32_t> key = next_chosen_key())
    return diwarp::MemoryRegion::with_stag(pd.inner, memory, *key, base, access);
  return {pd.inner, memory, access, base};
}

/// What requests call the first byte of a region.
uint64_t base_of(void* address, uint64_t iova) {
  return able(Ability::iova) ? iova : reinterpret_cast<uint64_t>(address);
}

std::byte* checked_memory(void* address, size_t size) {
  refuse_if(size == 0, EINVAL);
  return static_cast<std::byte*>(address);
}

}  // namespace

Pd::Pd(Context& its_context)
    : ibv_pd{.context = &its_context.context, .handle = static_cast<uint32_t>(next_serial())},
      inner(*its_context.device),
      use_(&its_context.users) {}

void Pd::add(Mw& window) {
  const std::lock_guard lock(mutex_);
  windows_.push_back(&window);
}

void Pd::remove(Mw& window) {
  const std::lock_guard lock(mutex_);
  std::erase(windows_, &window);
}

bool Pd::has_window_of(const Mr& region) {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(windows_, [&](Mw* window) { return window->is_bound_to(region); });
}

Mr::Mr(Pd& its_pd, void* its_address, size_t size, uint64_t iova, unsigned access)
    : ibv_mr{},
      use_(&its_pd.users),
      iova_(base_of(its_address, iova)),
      inner_(inner_region(its_pd, {checked_memory(its_address, size), size}, region_access(access),
                          iova_)) {
  Adapter& adapter = context_of(its_pd.context).adapter;
  context = its_pd.context;
  pd = &its_pd;
  addr = its_address;
  length = size;
  handle = static_cast<uint32_t>(next_serial());
  rkey = inner_.rkey();
  lkey = able(Ability::one_key) ? rkey : adapter.other_key(rkey);
  adapter.add_key(lkey, {.address = static_cast<std::byte*>(addr),
                         .iova = iova_,
                         .stag = rkey,
                         .read_sink = (access & IBV_ACCESS_REMOTE_WRITE) != 0});
  if (!fork_initialized) registered_before = true;
}

void Mr::check_unbound() const { refuse_if(static_cast<Pd*>(pd)->has_window_of(*this), EBUSY); }

Mr::~Mr() { context_of(context).adapter.remove_key(lkey); }

Mw::Mw(Pd& its_pd) : ibv_mw{}, use_(&its_pd.users), inner_(its_pd.inner) {
  context = its_pd.context;
  pd = &its_pd;
  rkey = inner_.stag();
  handle = static_cast<uint32_t>(next_serial());
  type = IBV_MW_TYPE_2;
  its_pd.add(*this);
}

Mw::~Mw() { static_cast<Pd*>(pd)->remove(*this); }

void Mw::note_binding(uint32_t key, const Mr& region) {
  const std::lock_guard lock(mutex_);
  regions_[key] = &region;
}

bool Mw::is_bound_to(const Mr& region) {
  const diwarp::SteeringTagAttributes bound = inner_.query();
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(bound.stag);
  return bound.valid && found != regions_.end() && found->second == &region;
}

diwarp::Access access_of(unsigned flags) {
  refuse_if((flags & ~kKnownAccess) != 0, EINVAL);
  using diwarp::Access;
  Access access = Access::none;
  if ((flags & IBV_ACCESS_LOCAL_WRITE) != 0) access = access | Access::local_write;
  if ((flags & IBV_ACCESS_REMOTE_WRITE) != 0) access = access | Access::remote_write;
  if ((flags & IBV_ACCESS_REMOTE_READ) != 0) access = access | Access::remote_read;
  if ((flags & IBV_ACCESS_MW_BIND) != 0) access = access | Access::window_bind;
  if ((flags & IBV_ACCESS_REMOTE_ATOMIC) != 0 && able(Ability::atomics))
    access = access | Access::remote_atomic;
  return access;
}

void choose_key(uint32_t key) {
  const std::lock_guard lock(keys_mutex);
  chosen_keys.push_back(key);
}

void clear_chosen_keys() {
  const std::lock_guard lock(keys_mutex);
  chosen_keys.clear();
}

int init_fork() {
  if (!able(Ability::fork)) return ENOSYS;
  if (able(Ability::copy_on_fork) || fork_initialized) return 0;
  if (registered_before) return EINVAL;
  fork_initialized = true;
  return 0;
}

ibv_fork_status fork_status() {
  if (able(Ability::fork) && able(Ability::copy_on_fork)) return IBV_FORK_UNNEEDED;
  return fork_initialized ? IBV_FORK_ENABLED : IBV_FORK_DISABLED;
}

void clear_fork() {
  fork_initialized = false;
  registered_before = false;
}

}  // namespace fake
