// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/detail/handle.h"
#include "diwarp/export.h"

namespace diwarp {

namespace rnic {
class Device;
}

using Duration = std::chrono::nanoseconds;

/// Who runs the RNIC's engine (docs/threading.md).
enum class Progress : uint8_t {
  thread,  ///< an RNIC thread, which steps aside while an application thread polls
  manual,  ///< the application alone: polling a completion queue and Device::progress()
};

struct DeviceOptions {
  Progress progress = Progress::thread;
  /// How long the RNIC thread looks for more work before it sleeps. Longer saves wake-ups (about
  /// 10 us each) and costs processor time.
  Duration spin = std::chrono::microseconds(50);
  /// How long after the application's last poll the RNIC thread takes the engine over.
  Duration takeover = std::chrono::microseconds(100);
  /// Processor the RNIC thread is bound to; -1: the scheduler's choice.
  int cpu = -1;
  /// Socket buffers of UD queue pairs, in bytes. Where the process may not exceed the system's
  /// limits (net.core.rmem_max, wmem_max), they are cut to these.
  size_t udp_receive_buffer = size_t{8} << 20;
  size_t udp_send_buffer = size_t{4} << 20;
  /// Let the kernel split and join trains of datagrams (UDP_SEGMENT, UDP_GRO) where it can.
  bool offload = true;
};

/// What a device is and can do.
struct DeviceAttributes {
  Address address;
  uint64_t max_message = 0;      ///< bytes
  uint32_t max_queue_depth = 0;  ///< work requests per queue
  uint32_t max_sge = 0;          ///< per work request
  uint32_t max_inline_data = 0;  ///< bytes
  uint32_t queue_pairs = 0;      ///< open now
  uint32_t memory_regions = 0;   ///< registered now
  std::string crc_backend;       ///< what computes CRC32C
  std::string datagram_backend;  ///< how datagrams are moved
  std::string stream_backend;
};

struct CounterValue {
  std::string_view name;
  std::string_view meaning;
  uint64_t value = 0;
};

/// A software RNIC on one address of this host, or on all of them.
class DIWARP_EXPORT Device {
 public:
  /// Opens a device on `address`: an IPv4 or IPv6 address of this host, "0.0.0.0" or "::" for all.
  /// Throws Error if it is not one.
  static Device open(std::string_view address, const DeviceOptions& options = {});
  static Device open(const Address& address, const DeviceOptions& options = {});

  /// One step of the engine: commands, receive, transmit, timers. Returns how much was done (0:
  /// nothing). Needed with Progress::manual; allowed with either.
  size_t progress();

  Address address() const;
  DeviceAttributes query() const;
  /// Every counter of the device, drop reasons included, summed over its queue pairs.
  std::vector<CounterValue> counters() const;
  /// The value of one counter by its name, 0 for an unknown name.
  uint64_t counter(std::string_view name) const;

  explicit Device(std::shared_ptr<rnic::Device> impl);
  const std::shared_ptr<rnic::Device>& impl() const { return impl_.shared(); }

 private:
  detail::Handle<rnic::Device> impl_;
};

}  // namespace diwarp
