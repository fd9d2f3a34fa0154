// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/counters.h"
#include "ddp/header.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"
#include "mpa/startup.h"
#include "rnic/endpoint.h"
#include "rnic/work_queue.h"

namespace diwarp::rnic {

class QueuePair;

// Tunables of RC transmission.

/// FPDUs that one system call carries at most: with Ethernet's segments about 46 KB.
inline constexpr size_t kBurstFpdus = 32;
/// No more is framed once so many bytes wait. With large segments this is what bounds a burst: what
/// was read for its CRC is still in the cache when the stream copies it, and a burst is less than a
/// receiver reads at once, so that the queue between them stays short (measured on loopback, 1 MiB
/// messages: 0.25 s of processor time per GB, against 0.55 s with 256 KiB).
inline constexpr size_t kBurstBytes = size_t{64} << 10;
/// How old the stream's segment size may become. It moves with the path MTU and with the peer's
/// window, and asking costs a system call.
inline constexpr Duration kSegmentRefresh = std::chrono::milliseconds(100);

/// The sending half of an RC queue pair: cuts messages into FPDUs and gives these to the stream, a
/// burst at a time. Payload stays where the application has it until the stream takes it.
class RcTransmit {
 public:
  /// What a burst needs from the queue pair.
  struct Context {
    SendQueue& sends;
    llp::Stream& stream;
    Counters& counters;
    const QueuePair& queue_pair;  ///< judges the memory of requests
  };

  enum class Fault : uint8_t {
    none,
    stream_failed,
    bad_memory,  ///< the oldest send may not be read; nobody can finish what was begun of it
  };

  struct Result {
    size_t fpdus = 0;  ///< that the stream took to the end
    Pending pending = Pending::nothing;
    Fault fault = Fault::none;
  };

  /// For a new stream. Only the initiator of a connection may send at once.
  void start(mpa::Agreement agreement, bool initiator);
  /// The initiator's first FPDU came: the responder may send (RFC 5044 section 7.1.2).
  void allow() { allowed_ = true; }
  bool allowed() const { return allowed_; }

  /// Sends one burst.
  Result run(Context context, Time now);

  /// Nothing of an unfinished message is on the stream, so that it may be ended in order here.
  bool at_boundary() const;

 private:
  /// An FPDU that is framed and not yet wholly on the stream. Its payload is found anew in the
  /// entry's SGEs each time.
  struct Fpdu {
    std::array<std::byte, mpa::kLengthBytes + ddp::kUntaggedHeaderBytes> header;
    std::array<std::byte, mpa::kMaxTrailer> trailer;
    uint8_t trailer_bytes = 0;
    bool last = false;    // of its message
    uint32_t offset = 0;  // of its payload, in its message
    uint32_t length = 0;  // of its payload

    size_t bytes() const { return header.size() + length + trailer_bytes; }
  };

  class Burst;

  void refresh_segment(const llp::Stream& stream, Time now);
  bool gather(Burst& burst) const;
  void frame(Burst& burst);
  bool frame_next(Burst& burst, const SendEntry& entry);
  void encode(Fpdu& fpdu, const SendEntry& entry, std::span<const ConstBytes> payload) const;
  size_t advance(Context& context, size_t bytes);
  Fpdu& framed(size_t index) { return fpdus_[(first_ + index) % kBurstFpdus]; }
  const Fpdu& framed(size_t index) const { return fpdus_[(first_ + index) % kBurstFpdus]; }

  bool allowed_ = false;
  bool crc_ = true;
  size_t max_payload_ = 0;
  Time measured_{};

  // Framed, in order: a ring.
  std::array<Fpdu, kBurstFpdus> fpdus_;
  size_t first_ = 0;
  size_t count_ = 0;
  size_t waiting_bytes_ = 0;  // of all of them
  size_t sent_ = 0;           // bytes of the first one that the stream has

  // What is framed next: so many bytes into the entry at this place, under this MSN.
  uint64_t next_entry_ = 0;
  uint64_t next_offset_ = 0;
  uint32_t next_msn_ = 1;
};

}  // namespace diwarp::rnic
