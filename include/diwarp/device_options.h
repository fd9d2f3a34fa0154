// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "diwarp/types.h"

namespace diwarp {

/// Which threads run the RNIC's engine (docs/threading.md).
enum class Progress : uint8_t {
  thread,  ///< an RNIC thread, which steps aside while an application thread polls
  manual,  ///< the application alone: polling a completion queue and Device::progress()
};

/// The means of moving bytes between the engine and the network. kIoBackends names them.
enum class IoBackend : uint8_t {
  automatic,  ///< the one that measured best (docs/performance.md)
  syscall,    ///< system calls
  uring,      ///< io_uring; system calls, and a line in the log, where it cannot be had
};

struct IoBackendName {
  IoBackend io;
  std::string_view name;
};

/// Each IoBackend and its name, as the tools take and print it.
inline constexpr std::array kIoBackends = {
    IoBackendName{IoBackend::automatic, "auto"},
    IoBackendName{IoBackend::syscall, "syscall"},
    IoBackendName{IoBackend::uring, "uring"},
};

constexpr std::string_view to_string(IoBackend io) {
  for (const IoBackendName& one : kIoBackends)
    if (one.io == io) return one.name;
  return "unknown";
}

/// Nothing where no backend has this name.
constexpr std::optional<IoBackend> parse_io_backend(std::string_view name) {
  for (const IoBackendName& one : kIoBackends)
    if (one.name == name) return one.io;
  return std::nullopt;
}

/// Whether what goes to queue pairs of this host goes through shared memory (docs/local.md).
enum class LocalPath : uint8_t {
  automatic,  ///< where the other end is a device of the same user that has it as well
  off,        ///< nothing does, and the device is not met
  require,    ///< all does, from the first datagram on, or is not sent. For tests
};

/// Each LocalPath and its name, as the tools take it.
struct LocalPathName {
  LocalPath local;
  std::string_view name;
};
inline constexpr std::array kLocalPaths = {
    LocalPathName{LocalPath::automatic, "auto"},
    LocalPathName{LocalPath::off, "off"},
    LocalPathName{LocalPath::require, "require"},
};

/// Whether a device that is opened by its address may be a hardware device (docs/bridge.md).
enum class Hardware : uint8_t {
  never,   ///< software
  prefer,  ///< hardware where the address has some that opens; else software, and a line in the log
  require,  ///< hardware; where there is none, opening fails
};

/// Each Hardware and its name, as the tools take it.
struct HardwareName {
  Hardware hardware;
  std::string_view name;
};
inline constexpr std::array kHardwareChoices = {
    HardwareName{Hardware::never, "never"},
    HardwareName{Hardware::prefer, "prefer"},
    HardwareName{Hardware::require, "require"},
};

struct DeviceOptions {
  Progress progress = Progress::thread;
  /// How long the RNIC thread looks for more work before it sleeps. Longer saves wake-ups (about
  /// 10 us each) and costs processor time.
  Duration spin = std::chrono::microseconds(50);
  /// How soon the RNIC thread takes the engine over after the application, which polled, has
  /// stopped. While it polls without a pause this doubles each time, up to `takeover_limit`: the
  /// longer, the less it is disturbed.
  Duration takeover = std::chrono::microseconds(100);
  Duration takeover_limit = std::chrono::milliseconds(2);
  /// When no poll has found anything to do for so long, the polling thread yields its processor
  /// once (sched_yield); it does so again after the same time. Where more threads poll than there
  /// are processors, each would else poll until the scheduler stops it, milliseconds later.
  /// Duration::max(): never.
  Duration yield_after = std::chrono::microseconds(50);
  /// Processor the RNIC thread is bound to; -1: the scheduler's choice.
  int cpu = -1;
  /// Socket buffers of UD queue pairs, in bytes. Where the process may not exceed the system's
  /// limits (net.core.rmem_max, wmem_max), they are cut to these.
  size_t udp_receive_buffer = size_t{8} << 20;
  size_t udp_send_buffer = size_t{4} << 20;
  /// Let the kernel split trains of datagrams that leave (UDP_SEGMENT), and join those that come
  /// (UDP_GRO), where it can.
  bool udp_segmentation = true;
  bool udp_coalescing = true;
  /// Above zero: a receive that finds nothing looks once into the network device's queue itself
  /// (SO_BUSY_POLL), for datagrams and streams; zero: as the system has it (net.core.busy_read). It
  /// saves the interrupt where the device's driver supports it, and only costs where not (loopback,
  /// veth). More than the system's own value needs CAP_NET_ADMIN; where that is refused the
  /// system's stays, and busy_poll_refused counts.
  Duration busy_poll = Duration::zero();
  /// RC: Sends and Writes leave without being copied (MSG_ZEROCOPY) where a call to the kernel has
  /// so many bytes of payload, in pieces longer than 512 bytes; 0: never. Worth it only on a
  /// network device, from about 10 KB on; on loopback and veth the kernel copies all the same, and
  /// it costs. Completions then come when the peer's TCP has acknowledged the bytes (docs/rc.md).
  /// Not with io_uring.
  size_t zerocopy_from = 0;
  IoBackend io = IoBackend::automatic;
  /// Between devices of this host and user, in one network and PID namespace, where both have it.
  /// Not with io_uring.
  LocalPath local = LocalPath::automatic;
  /// So many bursts in a row to one destination of this host earn it a ring in shared memory; 0:
  /// none does.
  uint32_t local_after = 8;
  /// Bytes of such a ring: a power of two from 256 KiB to 8 MiB. A datagram that finds it full, and
  /// whose receiver does not read, is lost; a stream waits.
  size_t local_ring = size_t{2} << 20;
  /// CRCs of connections are computed and checked in these rings as on the network. Else they are
  /// not, but of devices that are captured or impaired.
  bool local_crc = false;
  /// Rings that the device fills, and as many that it reads.
  uint32_t max_local_peers = 64;
  /// What the device sends and receives is written to this file as well, as packets of IP that
  /// Wireshark reads (pcapng); "%p" in it is the number of the process; empty: DIWARP_PCAP's, if
  /// any. The file holds payload, and is readable by the user alone (docs/capture.md).
  std::string pcap = {};
  /// The file gets no longer, in bytes: packets beyond are left out, and pcap_dropped counts.
  uint64_t pcap_limit = uint64_t{1} << 30;
  /// Devices that are opened by their names ("hw:NAME") are hardware whatever this says.
  Hardware hardware = Hardware::never;
};

}  // namespace diwarp
