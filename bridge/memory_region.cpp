// SPDX-License-Identifier: Apache-2.0
#include "bridge/memory_region.h"

#include <sys/resource.h>

#include <cerrno>
#include <string>
#include <utility>

#include "base/offsets.h"
#include "bridge/protection_domain.h"
#include "bridge/refuse.h"

namespace diwarp::bridge {
namespace {

constexpr std::pair<Access, int> kAccess[] = {
    {Access::local_write, IBV_ACCESS_LOCAL_WRITE},
    {Access::remote_write, IBV_ACCESS_REMOTE_WRITE},
    {Access::remote_read, IBV_ACCESS_REMOTE_READ},
    {Access::remote_atomic, IBV_ACCESS_REMOTE_ATOMIC},
    {Access::window_bind, IBV_ACCESS_MW_BIND},
};

std::string locked_memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return ". The process may lock " + std::to_string(limit.rlim_cur) +
         " bytes (RLIMIT_MEMLOCK): raise that with `ulimit -l` or in /etc/security/limits.conf";
}

[[noreturn]] void refuse_registration(int error, const Device& device, size_t length) {
  std::string message =
      "The device " + device.name() + " cannot register " + std::to_string(length) + " bytes";
  if (error == ENOMEM || error == EPERM) message += locked_memory_limit();
  if (error == EFAULT)
    message += ": some of them are not mapped, cannot be written to, or cannot be pinned";
  refuse_errno(error, message);
}

void check(const Device& device, std::span<const std::byte> memory, Access access,
           std::optional<uint64_t> base) {
  const bool written = has(access, Access::remote_write) || has(access, Access::remote_atomic);
  if (written && !has(access, Access::local_write))
    refuse(Errc::invalid_argument,
           "Memory that peers may change needs the right local_write as well");
  const uint64_t first = base.value_or(0);
  if (wraps(first, memory.size()) || (memory.data() == nullptr && !memory.empty()))
    refuse(Errc::invalid_argument,
           "A region needs memory, and tagged offsets that do not pass 2^64");
  if (memory.empty()) device.refuse_unsupported("memory regions of 0 bytes");
  if (base && *base != reinterpret_cast<uint64_t>(memory.data()))
    device.require(Capability::chosen_bases,
                   "tagged offsets that begin elsewhere than at the memory's address");
  if (has(access, Access::remote_atomic))
    device.require(Capability::atomics, "memory on which peers may do atomic operations");
}

}  // namespace

int verbs_access(Access access) {
  int flags = 0;
  for (const auto& [right, flag] : kAccess)
    if (has(access, right)) flags |= flag;
  return flags;
}

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory,
                           Access access, std::optional<uint64_t> base)
    : domain_(std::move(domain)), access_(access) {
  Device& device = domain_->device();
  check(device, memory, access, base);
  const auto address = reinterpret_cast<uint64_t>(memory.data());
  const int flags = verbs_access(access);
  ibv_mr* const region =
      base && *base != address
          ? device.verbs().reg_mr_iova2(domain_->get(), memory.data(), memory.size(), *base,
                                        static_cast<unsigned>(flags))
          : device.verbs().reg_mr(domain_->get(), memory.data(), memory.size(), flags);
  const int error = errno;
  if (region == nullptr) refuse_registration(error, device, memory.size());
  region_ = Owned<ibv_mr>(region, {device.verbs().dereg_mr});
  registration_ = {.lkey = region->lkey,
                   .rkey = region->rkey,
                   .memory = memory.data(),
                   .length = memory.size(),
                   .base = base.value_or(address)};
  domain_->add(*this);
  ++device.memory_regions();
}

void MemoryRegion::invalidate() {
  mark_invalid();
  end();
}

void MemoryRegion::end() {
  const auto none_is_bound = domain_->keep_bindable();
  domain_->remove(*this);
  ibv_mr* const region = region_.release();
  if (region == nullptr) return;
  const VerbsFunctions& verbs = domain_->device().verbs();
  if (errno_of(verbs.dereg_mr(region)) != 0) {
    domain_->end_windows_of(*this);
    if (const int error = errno_of(verbs.dereg_mr(region))) log_left(error);
  }
  domain_->unbind_windows_of(*this);
}

MemoryRegion::~MemoryRegion() {
  end();
  --domain_->device().memory_regions();
}

}  // namespace diwarp::bridge
