// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/counters.h"

/// TCP's sends without copying (MSG_ZEROCOPY): the kernel reads the memory of a call until a notice
/// in the socket's error queue tells that it needs it no more.
namespace diwarp::llp {

/// Calls of one socket that may be under way at once; more copy. The kernel's own bound is memory
/// for notices (net.core.optmem_max: about a hundred), the socket's the send buffer.
inline constexpr uint32_t kMaxZeroCopyCalls = 64;
/// Short pieces of a call are copied to a room of so many bytes, so each call under way costs as
/// much, kMaxZeroCopyCalls of them 256 KiB. A page, since the kernel counts its memory in pages.
inline constexpr size_t kShortBytes = 4096;

/// The calls that the kernel has released, numbered for each socket from 0 in 32 bits that wrap.
struct ZeroCopyNotice {
  uint32_t first = 0;
  uint32_t last = 0;
  bool copied = false;  ///< and had copied all the same
};

/// The notice in an entry of an error queue, as recvmsg(MSG_ERRQUEUE) left it; none where it is
/// something else.
std::optional<ZeroCopyNotice> parse_notice(const msghdr& entry);

/// The calls of one socket that are under way, each with a room for its short pieces. Rooms that
/// are free again are used anew, the last one first, and freed by trim(). Notices may come in any
/// order, and lie.
class ZeroCopyCalls {
 public:
  /// `before`: calls that the kernel has counted.
  explicit ZeroCopyCalls(uint64_t before = 0) : begun_(before), released_(before) {}

  bool full() const { return begun_ - released_ == kMaxZeroCopyCalls; }
  /// For the short pieces of the next call, not full(); empty where there is no memory. Bytes that
  /// lie there stay until the call is released.
  Bytes room();
  /// The kernel took the next call.
  void begin();

  /// False, and nothing changes, where these calls are not all under way.
  bool release(const ZeroCopyNotice& notice);
  void release_all();

  /// Frees rooms that no call had since the last time. True if some are left.
  bool trim();
  size_t rooms() const { return rooms_; }

  uint64_t begun() const { return begun_; }
  /// All calls before this one are released.
  uint64_t released() const { return released_; }

 private:
  struct alignas(kShortBytes) Page {
    std::array<std::byte, kShortBytes> bytes;
  };

  using Pages = std::array<std::unique_ptr<Page>, kMaxZeroCopyCalls>;

  std::unique_ptr<Page>& page_of(uint64_t call) { return used_[call % kMaxZeroCopyCalls]; }
  void free_page_of(uint64_t call);

  uint64_t begun_;
  uint64_t released_;
  uint64_t done_ = 0;  // bit n: so is the call released_ + n
  Pages used_;         // by calls in flight
  Pages free_;         // a stack of free_count_
  size_t free_count_ = 0;
  size_t untouched_ = 0;  // so many at its bottom, since the last trim()
  size_t rooms_ = 0;
};

/// The sends of a TCP socket without copying, and their outcome.
class ZeroCopySender {
 public:
  ZeroCopySender(size_t from, Counters& counters) : from_(from), counters_(counters) {}

  /// Whether these pieces are worth it.
  bool wants(std::span<const ConstBytes> pieces) const;
  /// As ZeroCopyCalls::room(); empty, and counted, as well where too many calls are under way.
  Bytes room();
  /// Sends `list` without copying, or copied where the kernel has no memory for that: as sendmsg()
  /// answers.
  ssize_t send(int fd, std::span<iovec> list);
  /// Takes over what the kernel has told.
  void take_notices(int fd);

  ZeroCopyCalls& calls() { return calls_; }
  const ZeroCopyCalls& calls() const { return calls_; }

 private:
  void take(const msghdr& entry);

  const size_t from_;
  Counters& counters_;
  ZeroCopyCalls calls_;
};

}  // namespace diwarp::llp
