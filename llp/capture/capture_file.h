// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.h"
#include "base/closed_in_child.h"
#include "base/counters.h"
#include "base/unique_fd.h"
#include "llp/capture/packet.h"
#include "llp/capture/pcapng.h"

namespace diwarp::llp {

/// A pcapng file that the devices of this process write their packets to. Adding a packet copies it
/// and never waits for the disk: a thread of the file's own writes. Any thread.
///
/// The file is the user's alone (mode 0600) and of one process at a time (flock). A file of an
/// earlier process is overwritten; what this process wrote is continued. Forked children do not
/// have it.
class CaptureFile {
 public:
  /// How much waits to be written, in bytes: packets beyond are dropped.
  static constexpr size_t kBuffer = size_t{4} << 20;
  /// Less than that would hold no packets, in bytes.
  static constexpr uint64_t kLeastLimit = 4096;

  /// The file of this path, in which "%p" stands for the number of the process; shared with those
  /// devices of the process that have it open. It gets no longer than `limit` bytes; packets beyond
  /// are dropped. Throws Error: std::errc::device_or_resource_busy (another process
  /// writes to it), Errc::invalid_argument (neither empty nor a capture, no regular file, another
  /// user's, or a limit below kLeastLimit or above 2^63 - 1), or the system's errno.
  static std::shared_ptr<CaptureFile> open(const std::string& path, uint64_t limit);

  CaptureFile(std::string path, UniqueFd file, uint64_t limit);
  /// Writes what waits.
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  /// A name that packets are told apart by. What becomes of its packets is counted (pcap_packets,
  /// pcap_dropped) until end_interface(). Throws std::bad_alloc.
  uint32_t add_interface(const std::string& name, Counters& counters);
  /// Its statistics. No packets of it come after.
  void end_interface(uint32_t interface);
  /// False: it was dropped.
  bool add(uint32_t interface, WallTime at, Direction direction, const Packet& packet);

 private:
  struct Interface {
    Counters* counters = nullptr;  // null: it has ended
    uint64_t taken = 0;
    uint64_t dropped = 0;
    // Packets in the buffers.
    uint64_t in_front = 0;
    uint64_t in_back = 0;

    void drop(uint64_t packets);
  };
  struct Buffer {
    std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kBuffer);
    size_t size = 0;
  };

  template <class Compose>
  bool append(size_t most, size_t spare, Compose&& compose);
  void write_all();
  void write(ConstBytes bytes);
  void give_up(int error, ConstBytes taken);
  void count_lost(ConstBytes taken);

  const std::string path_;
  const UniqueFd file_;
  const ClosedInChild closed_in_child_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable filled_;
  uint64_t room_;  // in the file, for what is not in a buffer yet
  Buffer front_;   // is filled
  std::vector<Interface> interfaces_;
  size_t live_ = 0;  // interfaces that have not ended
  bool ends_ = false;
  bool broken_ = false;  // nothing can be written any more

  Buffer back_;  // is written, by the thread
  uint64_t written_;
  std::thread thread_;
};

}  // namespace diwarp::llp
