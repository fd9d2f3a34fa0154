// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>
#include <diwarp/device.h>
#include <diwarp/memory.h>
#include <diwarp/queue_pair.h>

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "compat/cm/ud_messages.h"
#include "compat/cm/udp_port.h"

namespace diwarp::compat {

/// A UD queue pair of the library that sends and receives the messages of services. Its completion
/// queue tells of itself on `channel` with `context`.
class UdMessenger {
 public:
  /// Without a port it has a free one.
  UdMessenger(const diwarp::Device& device, const diwarp::CompletionChannel& channel,
              uint64_t context, std::optional<UdpPort> port);
  UdMessenger(const UdMessenger&) = delete;
  UdMessenger& operator=(const UdMessenger&) = delete;

  /// False where the queue of sends is full: nothing is sent.
  bool send(const Address& destination, std::span<const std::byte> message);

  using Handler = std::function<void(const Address& source, std::span<const std::byte> message)>;
  /// Hands out what has come, and asks for an event when more comes.
  void receive(const Handler& handler);
  /// Waits for a while until what was sent has left.
  void finish_sends();
  /// A destination at whose port nobody receives, as the network told; nothing: none.
  std::optional<Address> take_unreachable();

 private:
  static constexpr size_t kSlots = 256;
  /// Longer messages are dropped by the library.
  static constexpr size_t kSlotBytes = 512;
  static_assert(kSlotBytes >= kUdRequestBytes);

  void post_slot(size_t slot);
  bool take_some(const Handler& handler);
  std::span<std::byte> bytes_of(size_t slot) {
    return std::span(memory_).subspan(slot * kSlotBytes, kSlotBytes);
  }

  std::vector<std::byte> memory_;
  diwarp::ProtectionDomain domain_;
  diwarp::MemoryRegion region_;
  diwarp::CompletionQueue queue_;
  diwarp::QueuePair queue_pair_;
};

}  // namespace diwarp::compat
