// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/zero_copy_sender.h"

#include <linux/errqueue.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "llp/socket/send_list.h"
#include "llp/stream.h"

namespace diwarp::llp {
namespace {

/// Entries that one look takes out of an error queue: more than there can be notices.
constexpr size_t kEntriesPerLook = 2 * kMaxZeroCopyCalls;
/// Room for what else a socket's options may put beside a notice, such as timestamps.
constexpr size_t kNoticeControlBytes = 512;

bool is_error(const cmsghdr& message) {
  const bool ipv4 = message.cmsg_level == SOL_IP && message.cmsg_type == IP_RECVERR;
  const bool ipv6 = message.cmsg_level == SOL_IPV6 && message.cmsg_type == IPV6_RECVERR;
  return (ipv4 || ipv6) && message.cmsg_len >= CMSG_LEN(sizeof(sock_extended_err));
}

}  // namespace

static_assert(kMaxZeroCopyCalls == 64, "a word has a bit for each call");

// --- Notices.

std::optional<ZeroCopyNotice> parse_notice(const msghdr& entry) {
  for (cmsghdr* message = CMSG_FIRSTHDR(&entry); message != nullptr;
       message = CMSG_NXTHDR(const_cast<msghdr*>(&entry), message)) {
    if (!is_error(*message)) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(message), sizeof error);
    if (error.ee_origin != SO_EE_ORIGIN_ZEROCOPY || error.ee_errno != 0) continue;
    return ZeroCopyNotice{.first = error.ee_info,
                          .last = error.ee_data,
                          .copied = (error.ee_code & SO_EE_CODE_ZEROCOPY_COPIED) != 0};
  }
  return std::nullopt;
}

// --- Calls.

Bytes ZeroCopyCalls::room() {
  if (free_count_ == 0) {
    free_[0].reset(new (std::nothrow) Page);
    if (!free_[0]) return {};
    free_count_ = 1;
    ++rooms_;
  }
  return free_[free_count_ - 1]->bytes;
}

void ZeroCopyCalls::begin() {
  if (free_count_ != 0) page_of(begun_) = std::move(free_[--free_count_]);
  untouched_ = std::min(untouched_, free_count_);
  ++begun_;
}

void ZeroCopyCalls::free_page_of(uint64_t call) {
  if (page_of(call)) free_[free_count_++] = std::move(page_of(call));
}

bool ZeroCopyCalls::release(const ZeroCopyNotice& notice) {
  const uint32_t ahead = notice.first - static_cast<uint32_t>(released_);
  const uint32_t behind_first = notice.last - notice.first;
  const uint64_t in_flight = begun_ - released_;
  if (ahead >= in_flight || behind_first >= in_flight - ahead) return false;
  const uint64_t these = ~uint64_t{0} >> (kMaxZeroCopyCalls - 1 - behind_first) << ahead;
  if ((done_ & these) != 0) return false;
  done_ |= these;
  for (uint32_t n = ahead; n <= ahead + behind_first; ++n) free_page_of(released_ + n);
  const int more = std::countr_one(done_);
  released_ += static_cast<uint64_t>(more);
  done_ = more == int{kMaxZeroCopyCalls} ? 0 : done_ >> more;
  return true;
}

void ZeroCopyCalls::release_all() {
  for (; released_ != begun_; ++released_) free_page_of(released_);
  done_ = 0;
}

bool ZeroCopyCalls::trim() {
  const std::span<std::unique_ptr<Page>> free = std::span(free_).first(free_count_);
  std::rotate(free.begin(), free.begin() + static_cast<ptrdiff_t>(untouched_), free.end());
  free_count_ -= untouched_;
  rooms_ -= untouched_;
  for (std::unique_ptr<Page>& page : free.subspan(free_count_)) page.reset();
  untouched_ = free_count_;
  return rooms_ != 0;
}

// --- Sending.

bool ZeroCopySender::wants(std::span<const ConstBytes> pieces) const {
  size_t bytes = 0;
  for (const ConstBytes piece : pieces)
    if (piece.size() > kCopiedPiece) bytes += piece.size();
  return bytes >= from_;
}

Bytes ZeroCopySender::room() {
  const bool full = calls_.full();
  const Bytes room = full ? Bytes() : calls_.room();
  if (room.empty())
    counters_.add(full ? Counter::rc_zerocopy_full : Counter::rc_zerocopy_no_memory);
  return room;
}

ssize_t ZeroCopySender::send(int fd, std::span<iovec> list) {
  const ssize_t sent = send_list(fd, list, MSG_ZEROCOPY);
  if (sent > 0) {
    calls_.begin();
    counters_.add(Counter::rc_zerocopy_sends);
  }
  // EFAULT: the kernel cannot hold memory of this kind (a device's), but can read it.
  if (sent >= 0 || (errno != ENOBUFS && errno != EFAULT)) return sent;
  counters_.add(Counter::rc_zerocopy_no_memory);
  return send_list(fd, list);
}

void ZeroCopySender::take_notices(int fd) {
  for (size_t i = 0; i < kEntriesPerLook && calls_.begun() != calls_.released(); ++i) {
    alignas(cmsghdr) std::array<std::byte, kNoticeControlBytes> control;
    msghdr entry{};
    entry.msg_control = control.data();
    entry.msg_controllen = control.size();
    constexpr int kFlags = MSG_ERRQUEUE | MSG_DONTWAIT;
    if (uninterrupted([&] { return ::recvmsg(fd, &entry, kFlags); }) < 0) return;
    take(entry);
  }
}

void ZeroCopySender::take(const msghdr& entry) {
  const std::optional<ZeroCopyNotice> notice = parse_notice(entry);
  if (!notice || !calls_.release(*notice)) return counters_.add(Counter::rc_zerocopy_odd);
  if (notice->copied)
    counters_.add(Counter::rc_zerocopy_copied, uint64_t{notice->last - notice->first} + 1);
}

}  // namespace diwarp::llp
