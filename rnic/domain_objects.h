// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "provider/protection_domain.h"
#include "rnic/memory/protection_domain.h"

namespace diwarp::rnic {

/// Makes the objects of a protection domain of the software RNIC.
class DomainObjects final : public provider::ProtectionDomain {
 public:
  explicit DomainObjects(std::shared_ptr<rnic::ProtectionDomain> domain)
      : domain_(std::move(domain)) {}

  void check_destination(const Address& destination) const override;
  std::shared_ptr<provider::MemoryRegion> register_memory(std::span<std::byte> memory,
                                                          Access access,
                                                          std::optional<uint64_t> base,
                                                          std::optional<STag> chosen) override;
  std::shared_ptr<provider::SteeringTag> make_window(std::optional<STag> chosen) override;
  std::shared_ptr<provider::SteeringTag> make_fast_registration(uint64_t max_length) override;
  std::shared_ptr<provider::SharedReceiveQueue> make_shared_receive_queue(
      const SharedReceiveQueueOptions& options) override;
  /// In its first usable state.
  std::shared_ptr<provider::QueuePair> make_queue_pair(
      const provider::QueuePairInit& init) override;

 private:
  const std::shared_ptr<rnic::ProtectionDomain> domain_;
};

}  // namespace diwarp::rnic
