// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/memory.h"

#include <cerrno>

#include "compat/common/boundary.h"
#include "compat/common/export.h"
#include "compat/common/live_objects.h"
#include "compat/common/log.h"
#include "compat/verbs/functions.h"
#include "compat/verbs/probe.h"

// Macros of the header, which lead programs to these functions.
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace diwarp::compat {
namespace {

struct Right {
  unsigned of;
  Access access;
};
constexpr Right kRights[] = {
    {IBV_ACCESS_LOCAL_WRITE, Access::local_write},
    {IBV_ACCESS_REMOTE_WRITE, Access::remote_write},
    {IBV_ACCESS_REMOTE_READ, Access::remote_read},
    {IBV_ACCESS_REMOTE_ATOMIC, Access::remote_atomic},
    {IBV_ACCESS_MW_BIND, Access::window_bind},
};
constexpr unsigned kRemote =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr unsigned kKnown = IBV_ACCESS_LOCAL_WRITE | kRemote | IBV_ACCESS_MW_BIND |
                            IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB;

MemoryRegion registered(Pd& domain, void* memory, size_t bytes, uint64_t base, unsigned rights) {
  refuse_if(bytes == 0, EINVAL);
  const Access access = access_of(rights);
  check_memory(memory, bytes, (rights & IBV_ACCESS_LOCAL_WRITE) != 0);
  return MemoryRegion(domain.domain(), memory, bytes, access, base);
}

ibv_mr* make_region(ibv_pd* pd, void* address, size_t length, uint64_t base, unsigned rights) {
  return or_null([&]() -> ibv_mr* {
    const bool zero_based = (rights & IBV_ACCESS_ZERO_BASED) != 0;
    auto* const made = new Mr(pd_of(pd).shared(), address, length, zero_based ? 0 : base, rights);
    LiveObjects<Mr>::add(made);
    return made;
  });
}

}  // namespace

// --- Offsets.

void OffsetRegions::add(uint32_t key, const void* address, uint64_t base) {
  const uint64_t distance = reinterpret_cast<uintptr_t>(address) - base;
  if (distance == 0) return;
  const std::lock_guard lock(mutex_);
  distances_[key] = distance;
  count_ = distances_.size();
}

void OffsetRegions::remove(uint32_t key) {
  const std::lock_guard lock(mutex_);
  distances_.erase(key);
  count_ = distances_.size();
}

void OffsetRegions::translate(std::span<Sge> sges) const {
  const std::lock_guard lock(mutex_);
  for (Sge& sge : sges)
    if (const auto found = distances_.find(sge.lkey); found != distances_.end())
      sge.address =
          reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(sge.address) + found->second);
}

// --- Objects.

Access access_of(unsigned rights) {
  refuse_if((rights & IBV_ACCESS_ON_DEMAND) != 0, EOPNOTSUPP);
  refuse_if((rights & ~(kKnown | IBV_ACCESS_OPTIONAL_RANGE)) != 0, EINVAL);
  Access access = Access::none;
  for (const Right& right : kRights)
    if ((rights & right.of) != 0) access = access | right.access;
  // As siw has it: a peer may take back what it was given.
  if ((rights & kRemote) != 0) access = access | Access::remote_invalidate;
  return access;
}

Pd::Pd(Context& opened)
    : ibv_pd{},
      of_context_(&opened.users),
      engine_(opened.engine()),
      domain_(engine_.device()) {
  context = opened.handle();
}

Pd* Pd::make(Context& context) {
  auto made = std::make_shared<Pd>(context);
  made->self_ = made;
  return made.get();
}

void Pd::check_unused() const {
  users.check_none();
  if (!had_queue_pair_) regions.check_none();
}

void Pd::end() {
  of_context_.reset();
  const std::shared_ptr<Pd> last = std::move(self_);
}

Pd& pd_of(ibv_pd* pd) {
  refuse_if(pd == nullptr, EINVAL);
  return *static_cast<Pd*>(pd);
}

Mr::Mr(std::shared_ptr<Pd> domain, void* memory, size_t bytes, uint64_t base, unsigned rights)
    : ibv_mr{},
      domain_(std::move(domain)),
      of_domain_(&domain_->regions),
      region_(registered(*domain_, memory, bytes, base, rights)) {
  context = domain_->context;
  pd = domain_.get();
  addr = memory;
  length = bytes;
  lkey = region_.lkey();
  rkey = region_.rkey();
  domain_->offset_regions.add(lkey, memory, base);
}

Mr::~Mr() { domain_->offset_regions.remove(lkey); }

Mw::Mw(Pd& domain, ibv_mw_type kind)
    : ibv_mw{}, of_domain_(&domain.users), window_(domain.domain()) {
  context = domain.context;
  pd = &domain;
  rkey = window_.stag();
  type = kind;
}

ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type) {
  return or_null([&]() -> ibv_mw* {
    if (type == IBV_MW_TYPE_1) unsupported("ibv_alloc_mw of type 1");
    refuse_if(type != IBV_MW_TYPE_2, EINVAL);
    auto* const made = new Mw(pd_of(pd), type);
    LiveObjects<Mw>::add(made);
    return made;
  });
}

int bind_mw(ibv_qp*, ibv_mw*, ibv_mw_bind*) { return log_unsupported("ibv_bind_mw"); }

int dealloc_mw(ibv_mw* mw) {
  return errno_value([&] {
    auto* const window = static_cast<Mw*>(mw);
    LiveObjects<Mw>::take(window);
    delete window;
  });
}

}  // namespace diwarp::compat

using namespace diwarp::compat;  // NOLINT: what follows is the outer face

extern "C" {

DIWARP_COMPAT_EXPORT ibv_pd* ibv_alloc_pd(ibv_context* context) {
  return or_null([&]() -> ibv_pd* {
    Pd* const made = Pd::make(context_of(context));
    LiveObjects<Pd>::add(made);
    return made;
  });
}

DIWARP_COMPAT_EXPORT int ibv_dealloc_pd(ibv_pd* pd) {
  return errno_value([&] {
    auto* const domain = static_cast<Pd*>(pd);
    LiveObjects<Pd>::take(domain, [](const Pd& one) { one.check_unused(); });
    domain->end();
  });
}

DIWARP_COMPAT_EXPORT ibv_mr* ibv_reg_mr(ibv_pd* pd, void* address, size_t length, int access) {
  return make_region(pd, address, length, reinterpret_cast<uintptr_t>(address),
                     static_cast<unsigned>(access));
}

DIWARP_COMPAT_EXPORT ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* address, size_t length,
                                             uint64_t iova, int access) {
  return make_region(pd, address, length, iova, static_cast<unsigned>(access));
}

DIWARP_COMPAT_EXPORT ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* address, size_t length,
                                              uint64_t iova, unsigned access) {
  return make_region(pd, address, length, iova, access);
}

DIWARP_COMPAT_EXPORT int ibv_dereg_mr(ibv_mr* mr) {
  return errno_value([&] {
    auto* const region = static_cast<Mr*>(mr);
    LiveObjects<Mr>::take(region);
    delete region;
  });
}

}  // extern "C"
