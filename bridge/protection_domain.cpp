// SPDX-License-Identifier: Apache-2.0
#include "bridge/protection_domain.h"

#include <cerrno>

#include "bridge/memory_region.h"
#include "bridge/queue_pair.h"
#include "bridge/refuse.h"
#include "bridge/shared_receive_queue.h"

namespace diwarp::bridge {
namespace {

/// The low 8 bits are a key that requests may change.
STag index_of(STag stag) { return stag >> 8; }

/// From a region's address to where its tagged offsets begin.
uint64_t distance_of(const MemoryRegion& region) {
  const provider::Registration& registration = region.registration();
  return registration.base - reinterpret_cast<uint64_t>(registration.memory);
}

}  // namespace

ProtectionDomain::ProtectionDomain(std::shared_ptr<Device> device)
    : device_(std::move(device)),
      pd_(device_->verbs().alloc_pd(device_->context()), {device_->verbs().dealloc_pd}) {
  if (!pd_) refuse_errno(errno, "The device " + device_->name() + " has no protection domain left");
}

void ProtectionDomain::check_destination(const Address&) const {
  device_->refuse_unsupported("queue pairs over datagrams");
}

std::shared_ptr<provider::MemoryRegion> ProtectionDomain::register_memory(
    std::span<std::byte> memory, Access access, std::optional<uint64_t> base,
    std::optional<STag> chosen) {
  if (chosen) device_->refuse_unsupported("STags that the application chooses");
  return std::make_shared<MemoryRegion>(shared_from_this(), memory, access, base);
}

std::shared_ptr<provider::SteeringTag> ProtectionDomain::make_window(std::optional<STag> chosen) {
  if (chosen) device_->refuse_unsupported("STags that the application chooses");
  device_->require(Capability::memory_windows, "memory windows of type 2");
  return std::make_shared<SteeringTag>(shared_from_this());
}

std::shared_ptr<provider::SteeringTag> ProtectionDomain::make_fast_registration(uint64_t) {
  device_->refuse_unsupported("fast registration, which only the kernel may use");
}

std::shared_ptr<provider::SharedReceiveQueue> ProtectionDomain::make_shared_receive_queue(
    const SharedReceiveQueueOptions& options) {
  device_->require(Capability::shared_receive_queues, "shared receive queues");
  return SharedReceiveQueue::make(shared_from_this(), options);
}

std::shared_ptr<provider::QueuePair> ProtectionDomain::make_queue_pair(
    const provider::QueuePairInit& init) {
  return QueuePair::make(shared_from_this(), init);
}

void ProtectionDomain::add(MemoryRegion& region) {
  const std::lock_guard lock(mutex_);
  regions_[index_of(region.registration().lkey)] = &region;
  regions_by_rkey_[index_of(region.registration().rkey)] = &region;
  if (distance_of(region) != 0) ++based_regions_;
}

void ProtectionDomain::remove(const MemoryRegion& region) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(index_of(region.registration().lkey));
  if (found == regions_.end() || found->second != &region) return;
  if (distance_of(region) != 0) --based_regions_;
  regions_.erase(found);
  regions_by_rkey_.erase(index_of(region.registration().rkey));
}

void ProtectionDomain::unbind_windows_of(const MemoryRegion& region) {
  const std::lock_guard lock(mutex_);
  for (const auto& [index, window] : windows_) window->unbind_from(region.registration().lkey);
}

void ProtectionDomain::end_windows_of(const MemoryRegion& region) {
  const std::lock_guard lock(mutex_);
  for (const auto& [index, window] : windows_) window->end_if_of(region.registration().lkey);
}

void ProtectionDomain::add(SteeringTag& window) {
  const std::lock_guard lock(mutex_);
  windows_[index_of(window.stag())] = &window;
}

void ProtectionDomain::remove(const SteeringTag& window) {
  const std::lock_guard lock(mutex_);
  windows_.erase(index_of(window.stag()));
}

std::optional<Access> ProtectionDomain::access_of(STag stag) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(index_of(stag));
  if (found == regions_.end()) return std::nullopt;
  return found->second->access();
}

ibv_mr* ProtectionDomain::region_of(STag stag) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(index_of(stag));
  const bool known = found != regions_.end() && found->second->registration().lkey == stag;
  return known ? found->second->get() : nullptr;
}

uint64_t ProtectionDomain::named(const Sge& sge) const {
  const auto address = reinterpret_cast<uint64_t>(sge.address);
  if (based_regions_.load(std::memory_order_relaxed) == 0) return address;
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(index_of(sge.lkey));
  return found == regions_.end() ? address : address + distance_of(*found->second);
}

ibv_mw* ProtectionDomain::window_of(STag stag) const {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(stag));
  return found == windows_.end() ? nullptr : found->second->get();
}

bool ProtectionDomain::has_binding_left(STag window) const {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(window));
  return found == windows_.end() || found->second->has_binding_left();
}

uint64_t ProtectionDomain::add_binding(const MemoryBinding& binding) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(binding.stag));
  return found == windows_.end() ? 0 : found->second->add_binding(binding);
}

void ProtectionDomain::end_binding(const MemoryBinding& binding, uint64_t number, BindingEnd end) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(binding.stag));
  if (found != windows_.end()) found->second->end_binding(binding, number, end);
}

void ProtectionDomain::invalidated(STag stag, bool by_peer) {
  {
    const std::lock_guard lock(mutex_);
    const auto window = windows_.find(index_of(stag));
    if (window != windows_.end()) window->second->invalidate(stag, by_peer);
    const auto region = regions_by_rkey_.find(index_of(stag));
    if (region == regions_by_rkey_.end()) return;
    region->second->mark_invalid();
  }
  device_->tell_invalidated(stag);
}

}  // namespace diwarp::bridge
