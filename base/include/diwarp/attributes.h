// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "diwarp/address.h"
#include "diwarp/types.h"

/// What the objects of the verbs are made with, and what they tell about themselves.
namespace diwarp {

class CompletionQueue;
namespace rnic {
class CompletionQueue;
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
  bool io_uring = false;         ///< the kernel would let this process use it; nothing does yet
};

struct CompletionEvent {
  uint64_t context = 0;  ///< of the completion queue that has something
};

/// Names a completion queue in QueuePairInit; made from a CompletionQueue.
class CompletionQueueRef {
 public:
  CompletionQueueRef() = default;
  CompletionQueueRef(const CompletionQueue& cq);  // NOLINT: meant to convert
  explicit CompletionQueueRef(std::shared_ptr<rnic::CompletionQueue> impl)
      : impl_(std::move(impl)) {}
  const std::shared_ptr<rnic::CompletionQueue>& impl() const { return impl_; }

 private:
  std::shared_ptr<rnic::CompletionQueue> impl_;
};

/// How large a queue pair is. Queue depths are rounded up to a power of two.
struct QueuePairCapacity {
  uint32_t max_send_wr = 128;
  uint32_t max_recv_wr = 128;
  uint32_t max_send_sge = 4;
  uint32_t max_recv_sge = 4;
  uint32_t max_inline_data = 64;  ///< bytes
};

/// What only UD queue pairs have.
struct DatagramOptions {
  /// UDP port, which is also the queue pair's number; 0: a free one.
  uint16_t port = 0;
  /// A bound UDP descriptor to use instead of opening one; the queue pair owns it afterwards.
  int descriptor = -1;
  /// Messages with another Q_Key are dropped.
  uint32_t q_key = 0;
  /// Largest UDP payload to send, headers and CRC included; 0: what the path MTU carries. 64 to
  /// 65,507.
  uint32_t segment = 0;
  /// Sends at most this many bytes a second (payload of UDP); 0: no limit. The burst that pacing
  /// lets through at once is what the rate gives in 1 ms, at least one segment.
  uint64_t max_rate = 0;
  /// A message of which nothing new arrives for so long is given up and its receive is used again.
  Duration message_timeout = std::chrono::milliseconds(100);
  /// Messages of several segments that may be incomplete at once, in all and from one source. They
  /// never hold more than half of the posted receives.
  uint32_t max_open_messages = 64;
  uint32_t max_open_per_source = 16;
  /// Sources whose delivered messages are remembered (against duplicates). About 100 bytes each.
  uint32_t max_sources = 16384;
};

struct QueuePairInit {
  QpType type = QpType::rc;
  CompletionQueueRef send_cq;
  CompletionQueueRef recv_cq;
  QueuePairCapacity capacity = {};
  DatagramOptions datagram = {};
  /// Every send gets a completion, whatever its flags.
  bool signal_all = false;
};

struct QueuePairAttributes {
  QpType type = QpType::rc;
  QpState state = QpState::reset;
  uint32_t number = 0;  ///< 24 bits
  QueuePairCapacity capacity;
  Address local_address;
  Address peer_address;      ///< RC, once connected
  uint32_t q_key = 0;        ///< UD
  uint64_t max_rate = 0;     ///< UD
  uint32_t posted_sends = 0;
  uint32_t posted_receives = 0;
};

struct ConnectOptions {
  /// Up to 512 bytes that the listener sees in its ConnectionRequest (RFC 5044 section 7.1).
  std::span<const std::byte> private_data = {};
  /// How long resolving, TCP's handshake and the MPA reply may take together.
  Duration timeout = std::chrono::seconds(10);
  /// Ask for CRCs. They are used if either side asks.
  bool crc = true;
};

struct DisconnectOptions {
  /// How long what was posted may take to go out, and the peer to close its side.
  Duration timeout = std::chrono::seconds(5);
};

struct AcceptOptions {
  /// Up to 512 bytes that connect() returns at the peer.
  std::span<const std::byte> private_data = {};
  /// Use CRCs even if the peer does not ask for them.
  bool crc = true;
};

struct ListenOptions {
  int backlog = 128;
  /// A peer that has not sent its whole MPA request by then is dropped (RFC 5044 section 7.1).
  Duration request_timeout = std::chrono::seconds(5);
  /// Requests that may wait for get_request(); more are dropped.
  size_t max_requests = 1024;
};

}  // namespace diwarp
