// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "diwarp/queue_options.h"
#include "diwarp/types.h"

namespace diwarp::provider {

class MemoryRegion;
class QueuePair;
class SharedReceiveQueue;
class SteeringTag;
struct QueuePairInit;

/// Makes the objects that a protection domain keeps together. They keep it, and its device. Each
/// call throws Error as the constructor of the public class has it.
class ProtectionDomain {
 public:
  virtual ~ProtectionDomain() = default;

  /// Throws Error(invalid_destination) where no queue pair can send there.
  virtual void check_destination(const Address& destination) const = 0;

  /// `chosen`: the STag that the application wants.
  virtual std::shared_ptr<MemoryRegion> register_memory(std::span<std::byte> memory, Access access,
                                                        std::optional<uint64_t> base,
                                                        std::optional<STag> chosen) = 0;
  virtual std::shared_ptr<SteeringTag> make_window(std::optional<STag> chosen) = 0;
  virtual std::shared_ptr<SteeringTag> make_fast_registration(uint64_t max_length) = 0;
  virtual std::shared_ptr<SharedReceiveQueue> make_shared_receive_queue(
      const SharedReceiveQueueOptions& options) = 0;
  virtual std::shared_ptr<QueuePair> make_queue_pair(const QueuePairInit& init) = 0;
};

}  // namespace diwarp::provider
