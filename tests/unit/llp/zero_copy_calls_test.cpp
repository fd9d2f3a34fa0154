// SPDX-License-Identifier: Apache-2.0
// Sends that the kernel does not copy: the contents of its notices, and which calls they end.
#include "llp/tcp/zero_copy_sender.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "error_queue_entry.h"
#include "support/bytes.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::ErrorQueueEntry;

// --- Notices.

std::optional<ZeroCopyNotice> notice_in(ErrorQueueEntry& entry) {
  const msghdr header = entry.header();
  return parse_notice(header);
}

ConstBytes contents(const sock_extended_err& error) { return std::as_bytes(std::span(&error, 1)); }

/// Origin 5, code 1: SO_EE_ORIGIN_ZEROCOPY and SO_EE_CODE_ZEROCOPY_COPIED of the kernel's
/// interface.
constexpr sock_extended_err kGood{.ee_errno = 0,
                                  .ee_origin = 5,
                                  .ee_type = 0,
                                  .ee_code = 1,
                                  .ee_pad = 0,
                                  .ee_info = 3,
                                  .ee_data = 9};

}  // namespace

TEST_CASE("a notice says which calls the kernel has released, over IPv4 and IPv6") {
  const bool ipv4 = GENERATE(true, false);
  const auto notice = notice_in(
      ErrorQueueEntry()
          .add(SOL_SOCKET, SO_TIMESTAMP, bytes_of("sixteen bytes ..."))
          .add(ipv4 ? SOL_IP : SOL_IPV6, ipv4 ? IP_RECVERR : IPV6_RECVERR, contents(kGood)));
  REQUIRE(notice);
  CHECK(notice->first == 3);
  CHECK(notice->last == 9);
  CHECK(notice->copied);
}

TEST_CASE("another entry of an error queue is no notice") {
  sock_extended_err other = kGood;
  SECTION("nothing") {
    ErrorQueueEntry empty;
    CHECK_FALSE(notice_in(empty));
  }
  SECTION("an ICMP message") { other.ee_origin = SO_EE_ORIGIN_ICMP; }
  SECTION("a timestamp") { other.ee_origin = SO_EE_ORIGIN_TIMESTAMPING; }
  SECTION("an error") { other.ee_errno = ECONNREFUSED; }
  const bool changed = std::memcmp(&other, &kGood, sizeof other) != 0;
  if (changed) CHECK_FALSE(notice_in(ErrorQueueEntry().add(SOL_IP, IP_RECVERR, contents(other))));
  const ConstBytes whole = contents(kGood);
  CHECK_FALSE(notice_in(ErrorQueueEntry().add(SOL_IP, IP_RECVERR, whole.first(whole.size() - 1))));
  CHECK_FALSE(notice_in(ErrorQueueEntry().add(SOL_IP, IP_TTL, contents(kGood))));
}

// --- Calls.

TEST_CASE("calls are released in order, in whatever order notices come") {
  const uint64_t before = GENERATE(uint64_t{0}, uint64_t{UINT32_MAX} - 2, uint64_t{UINT32_MAX});
  CAPTURE(before);
  ZeroCopyCalls calls(before);
  for (int i = 0; i < 6; ++i) calls.begin();
  const auto number = [&](uint32_t n) { return static_cast<uint32_t>(before) + n; };
  CHECK(calls.begun() == before + 6);
  CHECK(calls.release({number(1), number(2)}));
  CHECK(calls.released() == before);
  CHECK(calls.release({number(5), number(5)}));
  CHECK(calls.release({number(0), number(0)}));
  CHECK(calls.released() == before + 3);
  CHECK(calls.release({number(3), number(4)}));
  CHECK(calls.released() == before + 6);
}

TEST_CASE("as many calls as may be under way are released by one notice") {
  ZeroCopyCalls calls(UINT32_MAX - 10);
  for (uint32_t i = 0; i < kMaxZeroCopyCalls; ++i) {
    CHECK_FALSE(calls.full());
    calls.begin();
  }
  CHECK(calls.full());
  CHECK(calls.release({UINT32_MAX - 10, UINT32_MAX - 10 + kMaxZeroCopyCalls - 1}));
  CHECK(calls.released() == calls.begun());
  CHECK_FALSE(calls.full());
  calls.begin();
  CHECK(calls.released() == calls.begun() - 1);
}

TEST_CASE("a notice of calls that are not under way changes nothing") {
  ZeroCopyCalls calls;
  for (int i = 0; i < 8; ++i) calls.begin();
  REQUIRE(calls.release({0, 1}));
  REQUIRE(calls.release({4, 5}));
  const auto [first, last] = GENERATE(table<uint32_t, uint32_t>({{3, 2},           // backwards
                                                                 {7, 6},           //
                                                                 {1, 2},           // told before
                                                                 {0, 7},           //
                                                                 {4, 4},           //
                                                                 {3, 6},           //
                                                                 {7, 8},           // not begun
                                                                 {8, 8},           //
                                                                 {2, UINT32_MAX},  //
                                                                 {UINT32_MAX, 3},  //
                                                                 {2, 2 + (1U << 31)}}));
  CAPTURE(first, last);
  CHECK_FALSE(calls.release({first, last}));
  CHECK(calls.released() == 2);
  CHECK(calls.release({2, 3}));
  CHECK(calls.released() == 6);
}

TEST_CASE("calls under way have rooms of their own, and a stream with one at a time needs one") {
  ZeroCopyCalls calls;
  const std::byte* const first = calls.room().data();
  REQUIRE(calls.room().size() == kShortBytes);
  for (uint32_t i = 0; i < 200; ++i) {
    CHECK(calls.room().data() == first);
    calls.begin();
    REQUIRE(calls.release({i, i}));
  }
  std::set<const std::byte*> rooms;
  for (uint32_t i = 0; i < kMaxZeroCopyCalls; ++i) {
    rooms.insert(calls.room().data());
    calls.begin();
  }
  CHECK(rooms.size() == kMaxZeroCopyCalls);
  REQUIRE(calls.release({200, 200}));
  CHECK(calls.room().data() == first);
}

TEST_CASE("the room that was needed last is the next one to be used") {
  ZeroCopyCalls calls;
  std::array<const std::byte*, 3> rooms;
  for (const std::byte*& room : rooms) {
    room = calls.room().data();
    calls.begin();
  }
  REQUIRE(calls.release({2, 2}));
  REQUIRE(calls.release({0, 0}));
  CHECK(calls.room().data() == rooms[0]);
  calls.begin();
  CHECK(calls.room().data() == rooms[2]);
  calls.begin();
  const std::byte* const more = calls.room().data();
  CHECK(std::ranges::count(rooms, more) == 0);
}

TEST_CASE("rooms that no call had between two looks are freed, and those of calls under way stay") {
  ZeroCopyCalls calls;
  const auto begin = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      REQUIRE(calls.room().size() == kShortBytes);
      calls.begin();
    }
  };
  const auto release = [&](uint64_t first, uint64_t last) {
    REQUIRE(calls.release({static_cast<uint32_t>(first), static_cast<uint32_t>(last)}));
  };
  CHECK_FALSE(calls.trim());
  begin(kMaxZeroCopyCalls);
  release(0, kMaxZeroCopyCalls - 1);
  CHECK(calls.trim());  // they were all used
  CHECK(calls.rooms() == kMaxZeroCopyCalls);
  begin(3);
  release(calls.begun() - 2, calls.begun() - 1);
  CHECK(calls.trim());
  CHECK(calls.rooms() == 3);
  CHECK(calls.trim());
  CHECK(calls.trim());
  CHECK(calls.rooms() == 1);  // under way
  release(calls.begun() - 3, calls.begun() - 3);
  CHECK(calls.trim());
  CHECK_FALSE(calls.trim());
  CHECK(calls.rooms() == 0);
  begin(1);
  CHECK(calls.rooms() == 1);
}

}  // namespace diwarp::llp
