// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "hybrid/device.h"
#include "hybrid/halves.h"
#include "provider/protection_domain.h"

namespace diwarp::hybrid {

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

  const std::shared_ptr<Device>& device() const { return device_; }
  const Halves<provider::ProtectionDomain>& halves() const { return halves_; }

 private:
  std::shared_ptr<provider::CompletionQueue> half_of(
      const std::shared_ptr<provider::CompletionQueue>& queue, Half half) const;

  const std::shared_ptr<Device> device_;
  const Halves<provider::ProtectionDomain> halves_;
};

}  // namespace diwarp::hybrid
