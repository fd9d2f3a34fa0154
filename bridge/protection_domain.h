// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "bridge/device.h"
#include "bridge/owned.h"
#include "bridge/steering_tag.h"
#include "provider/protection_domain.h"

namespace diwarp::bridge {

class MemoryRegion;

class ProtectionDomain final : public provider::ProtectionDomain,
                               public std::enable_shared_from_this<ProtectionDomain> {
 public:
  explicit ProtectionDomain(std::shared_ptr<Device> device);

  void check_destination(const Address& destination) const override;
  std::shared_ptr<provider::MemoryRegion> register_memory(std::span<std::byte> memory,
                                                          Access access,
                                                          std::optional<uint64_t> base,
                                                          std::optional<STag> chosen) override;
  std::shared_ptr<provider::SteeringTag> make_window(std::optional<STag> chosen) override;
  std::shared_ptr<provider::SteeringTag> make_fast_registration(uint64_t max_length) override;
  std::shared_ptr<provider::SharedReceiveQueue> make_shared_receive_queue(
      const SharedReceiveQueueOptions& options) override;
  std::shared_ptr<provider::QueuePair> make_queue_pair(
      const provider::QueuePairInit& init) override;

  Device& device() const { return *device_; }
  const std::shared_ptr<Device>& shared_device() const { return device_; }
  ibv_pd* get() const { return pd_.get(); }

  // --- What is registered here, by the upper 24 bits of its STag: where a region has two, the
  // lkey, but for invalidated(). Any thread.

  /// Regions and windows stay while it is held: from the translation of a request to bind one until
  /// the device has the request. Taken after any other mutex but those of the tables and windows.
  std::unique_lock<std::mutex> keep_bindable() { return std::unique_lock(bindable_); }
  void add(MemoryRegion& region);
  void remove(const MemoryRegion& region);
  /// The windows that are bound to it are bound to nothing.
  void unbind_windows_of(const MemoryRegion& region);
  /// The windows that may be bound to it end for ever: the device keeps their region while they
  /// live.
  void end_windows_of(const MemoryRegion& region);
  void add(SteeringTag& window);
  void remove(const SteeringTag& window);
  /// The rights of the region with this STag; nothing where there is none.
  std::optional<Access> access_of(STag stag) const;
  ibv_mr* region_of(STag stag) const;
  /// How libibverbs names the memory of an SGE: in regions whose tagged offsets do not begin at
  /// their address by the tagged offset, else by the address.
  uint64_t named(const Sge& sge) const;
  ibv_mw* window_of(STag stag) const;
  /// False where kMostBindings of the window are posted.
  bool has_binding_left(STag window) const;
  /// A request to bind a window is posted. Returns its number among the window's; 0 where
  /// kMostBindings are posted.
  uint64_t add_binding(const MemoryBinding& binding);
  void end_binding(const MemoryBinding& binding, uint64_t number, BindingEnd end);
  /// The STag was invalidated by the peer, else by its owner.
  void invalidated(STag stag, bool by_peer);

 private:
  const std::shared_ptr<Device> device_;
  Owned<ibv_pd> pd_;
  std::mutex bindable_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<STag, MemoryRegion*> regions_;
  std::unordered_map<STag, MemoryRegion*> regions_by_rkey_;
  std::unordered_map<STag, SteeringTag*> windows_;
  std::atomic<size_t> based_regions_{0};  // whose tagged offsets begin elsewhere
};

}  // namespace diwarp::bridge
