// SPDX-License-Identifier: Apache-2.0
// Sends that the kernel does not copy: what its notices say, which calls they end, and what that means
// for a stream's memory.
#include "llp/in_place.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "bytes.h"
#include "llp/poller.h"
#include "llp/tcp.h"
#include "llp/uring_stream.h"
#include "backends.h"
#include "raw_socket.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::pattern;
using test::read_bytes;
using test::tcp_pair;

constexpr size_t kFrom = 10'000;

// --- Notices.

/// An entry of an error queue: messages that lie one behind the other as the kernel puts them.
class Entry {
 public:
  Entry& add(int level, int type, ConstBytes contents) {
    auto* const message = reinterpret_cast<cmsghdr*>(control_.data() + used_);
    message->cmsg_level = level;
    message->cmsg_type = type;
    message->cmsg_len = CMSG_LEN(contents.size());
    std::memcpy(CMSG_DATA(message), contents.data(), contents.size());
    used_ += CMSG_SPACE(contents.size());
    return *this;
  }
  Entry& add(int level, int type, const sock_extended_err& error) {
    return add(level, type, std::as_bytes(std::span(&error, 1)));
  }
  std::optional<InPlaceNotice> notice() {
    msghdr header{};
    header.msg_control = control_.data();
    header.msg_controllen = used_;
    return parse_notice(header);
  }

 private:
  alignas(cmsghdr) std::array<std::byte, 512> control_{};
  size_t used_ = 0;
};

/// Origin 5, code 1: SO_EE_ORIGIN_ZEROCOPY and SO_EE_CODE_ZEROCOPY_COPIED of the kernel's interface.
constexpr sock_extended_err kGood{.ee_errno = 0,
                                  .ee_origin = 5,
                                  .ee_type = 0,
                                  .ee_code = 1,
                                  .ee_pad = 0,
                                  .ee_info = 3,
                                  .ee_data = 9};

}  // namespace

TEST_CASE("a notice says which calls the kernel has let go of, over IPv4 and IPv6") {
  const bool ipv4 = GENERATE(true, false);
  const auto notice = Entry()
                          .add(SOL_SOCKET, SO_TIMESTAMP, bytes_of("sixteen bytes ..."))
                          .add(ipv4 ? SOL_IP : SOL_IPV6, ipv4 ? IP_RECVERR : IPV6_RECVERR, kGood)
                          .notice();
  REQUIRE(notice);
  CHECK(notice->first == 3);
  CHECK(notice->last == 9);
  CHECK(notice->copied);
}

TEST_CASE("what else stands in an error queue is no notice") {
  sock_extended_err other = kGood;
  SECTION("nothing") { CHECK_FALSE(Entry().notice()); }
  SECTION("an ICMP message") { other.ee_origin = SO_EE_ORIGIN_ICMP; }
  SECTION("a timestamp") { other.ee_origin = SO_EE_ORIGIN_TIMESTAMPING; }
  SECTION("an error") { other.ee_errno = ECONNREFUSED; }
  const bool changed = std::memcmp(&other, &kGood, sizeof other) != 0;
  if (changed) CHECK_FALSE(Entry().add(SOL_IP, IP_RECVERR, other).notice());
  const ConstBytes whole = std::as_bytes(std::span(&kGood, 1));
  CHECK_FALSE(Entry().add(SOL_IP, IP_RECVERR, whole.first(whole.size() - 1)).notice());
  CHECK_FALSE(Entry().add(SOL_IP, IP_TTL, kGood).notice());
}

// --- Calls.

TEST_CASE("calls are released in order, in whatever order notices come") {
  const uint64_t before = GENERATE(uint64_t{0}, uint64_t{UINT32_MAX} - 2, uint64_t{UINT32_MAX});
  CAPTURE(before);
  InPlaceCalls calls(before);
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
  InPlaceCalls calls(UINT32_MAX - 10);
  for (uint32_t i = 0; i < kMaxInPlace; ++i) {
    CHECK_FALSE(calls.full());
    calls.begin();
  }
  CHECK(calls.full());
  CHECK(calls.release({UINT32_MAX - 10, UINT32_MAX - 10 + kMaxInPlace - 1}));
  CHECK(calls.released() == calls.begun());
  CHECK_FALSE(calls.full());
  calls.begin();
  CHECK(calls.released() == calls.begun() - 1);
}

TEST_CASE("a notice of calls that are not under way changes nothing") {
  InPlaceCalls calls;
  for (int i = 0; i < 8; ++i) calls.begin();
  REQUIRE(calls.release({0, 1}));
  REQUIRE(calls.release({4, 5}));
  const auto [first, last] = GENERATE(table<uint32_t, uint32_t>({{3, 2},             // backwards
                                                                 {7, 6},             //
                                                                 {1, 2},             // told before
                                                                 {0, 7},             //
                                                                 {4, 4},             //
                                                                 {3, 6},             //
                                                                 {7, 8},             // not begun
                                                                 {8, 8},             //
                                                                 {2, UINT32_MAX},    //
                                                                 {UINT32_MAX, 3},    //
                                                                 {2, 2 + (1U << 31)}}));
  CAPTURE(first, last);
  CHECK_FALSE(calls.release({first, last}));
  CHECK(calls.released() == 2);
  CHECK(calls.release({2, 3}));
  CHECK(calls.released() == 6);
}

TEST_CASE("calls under way have rooms of their own, and who has one at a time needs one") {
  InPlaceCalls calls;
  const std::byte* const first = calls.room().data();
  REQUIRE(calls.room().size() == kShortBytes);
  for (uint32_t i = 0; i < 200; ++i) {
    CHECK(calls.room().data() == first);
    calls.begin();
    REQUIRE(calls.release({i, i}));
  }
  std::set<const std::byte*> rooms;
  for (uint32_t i = 0; i < kMaxInPlace; ++i) {
    rooms.insert(calls.room().data());
    calls.begin();
  }
  CHECK(rooms.size() == kMaxInPlace);
  REQUIRE(calls.release({200, 200}));
  CHECK(calls.room().data() == first);
}

// --- Streams.

namespace {

/// A stream that sends in place over one end of a connection, and the other end raw.
struct InPlace {
  InPlace() {
    auto [first, second] = tcp_pair();
    stream = TcpStream::adopt(first.release());
    peer = std::move(second);
    REQUIRE(stream->allow_in_place(kFrom, counters));
  }
  /// So that the kernel keeps most of a long message at the sender, and in place.
  void receive_little() {
    const int bytes = 16 << 10;
    REQUIRE(::setsockopt(peer.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
  }
  IoResult send(std::string_view text) {
    const ConstBytes piece = bytes_of(text);
    return stream->send_in_place({&piece, 1});
  }
  bool all_released() {
    for (int tries = 0; tries < 5000; ++tries) {
      if (stream->released() == stream->borrowed()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  uint64_t count(Counter counter) const { return counters.get(counter); }

  Counters counters;
  std::unique_ptr<TcpStream> stream;
  UniqueFd peer;
};

}  // namespace

TEST_CASE("a stream that sends in place borrows long pieces until the peer has them") {
  InPlace c;
  c.receive_little();
  const std::string text = pattern(400'000);
  const IoResult sent = c.send(text);
  REQUIRE(sent.status == IoStatus::ok);
  REQUIRE(sent.bytes > 100'000);
  CHECK(c.stream->borrowed() == 1);
  CHECK(c.stream->released() == 0);
  CHECK(read_bytes(c.peer.get(), sent.bytes) == text.substr(0, sent.bytes));
  CHECK(c.all_released());
  CHECK(c.stream->released() == 1);
  CHECK(c.count(Counter::rc_zerocopy_sends) == 1);
  CHECK(c.count(Counter::rc_zerocopy_copied) == 1);  // loopback
  CHECK(c.count(Counter::rc_zerocopy_odd) == 0);
}

TEST_CASE("memory of a long piece is read after the call, that of short ones is not") {
  InPlace c;
  c.receive_little();
  std::string head = pattern(kCopiedPiece, 1);
  std::string body = pattern(300'000, 2);
  std::string tail = pattern(7, 3);
  const std::string was = head + body + tail;
  const std::array pieces = {bytes_of(head), bytes_of(body), bytes_of(tail)};
  const IoResult sent = c.stream->send_in_place(pieces);
  REQUIRE(sent.bytes == was.size());
  std::fill(head.begin(), head.end(), '!');
  std::fill(tail.begin(), tail.end(), '!');
  const size_t late = 250'000;  // far beyond what the peer has room for
  std::fill(body.begin() + late, body.end(), '?');
  const std::string came = read_bytes(c.peer.get(), was.size());
  REQUIRE(came.size() == was.size());
  CHECK(came.substr(0, kCopiedPiece) == was.substr(0, kCopiedPiece));
  CHECK(came.substr(was.size() - 7) == was.substr(was.size() - 7));
  const size_t changed = kCopiedPiece + late;
  CHECK(came.substr(changed, 1000) == std::string(1000, '?'));
}

TEST_CASE("what is sent in place and copied in turn arrives in order, whatever its pieces") {
  InPlace c;
  std::vector<std::string> messages;
  std::string all;
  for (size_t i = 0; i < 300; ++i) {
    messages.push_back(pattern(1 + (i * 7919) % 60'000, i));
    all += messages.back();
  }
  std::string came;
  std::thread reader([&] { came = read_bytes(c.peer.get(), all.size()); });
  for (const std::string& message : messages) {
    std::string_view rest = message;
    while (!rest.empty()) {
      std::vector<ConstBytes> pieces;
      // Heads, bodies and trailers, and once in a while more short pieces than have room.
      const size_t step = message.size() % 3 == 0 ? 500 : 20'000;
      for (size_t at = 0; at < rest.size(); at += step) {
        const std::string_view part = rest.substr(at, step);
        pieces.push_back(bytes_of(part.substr(0, 20)));
        if (part.size() > 20) pieces.push_back(bytes_of(part.substr(20)));
      }
      const IoResult sent = c.stream->send_in_place(pieces);
      REQUIRE(sent.status != IoStatus::failed);
      rest.remove_prefix(sent.bytes);
    }
    c.stream->released();
  }
  reader.join();
  CHECK(came == all);
  CHECK(c.all_released());
  CHECK(c.count(Counter::rc_zerocopy_sends) > 50);
}

TEST_CASE("calls with little payload are copied, as are all of a stream that was not asked") {
  InPlace c;
  std::vector<ConstBytes> pieces;
  const std::string text = pattern(100'000);
  SECTION("little") { pieces.push_back(bytes_of(std::string_view(text).substr(0, kFrom - 1))); }
  SECTION("short pieces") {
    for (size_t at = 0; at < 60'000; at += 512)
      pieces.push_back(bytes_of(std::string_view(text).substr(at, 512)));
  }
  SECTION("not asked") {
    auto [first, second] = tcp_pair();
    c.stream = TcpStream::adopt(first.release());
    c.peer = std::move(second);
    pieces.push_back(bytes_of(text));
  }
  CHECK(c.stream->send_in_place(pieces).status == IoStatus::ok);
  CHECK(c.stream->borrowed() == 0);
  CHECK(c.stream->released() == 0);
  CHECK(c.count(Counter::rc_zerocopy_sends) == 0);
}

TEST_CASE("a notice makes the descriptor poll as failed, and breaks nothing") {
  InPlace c;
  Poller poller;
  int key = 0;
  REQUIRE(poller.try_add(c.stream->descriptor(), &key, false, false));
  const std::string text = pattern(20'000);
  REQUIRE(c.send(text).bytes == text.size());
  REQUIRE(read_bytes(c.peer.get(), text.size()) == text);
  std::array<PollEvent, 1> events;
  REQUIRE(poller.wait(events, std::chrono::seconds(30)) == 1);
  CHECK(events[0].failed);
  std::array<std::byte, 8> buffer;
  CHECK(c.stream->receive(buffer).status == IoStatus::would_block);
  CHECK(c.all_released());
  CHECK(poller.wait(events, Duration::zero()) == 0);
  CHECK(c.send(text).status == IoStatus::ok);
}

TEST_CASE("a stream that is reset has let go of everything, and so has one whose peer resets it") {
  InPlace c;
  c.receive_little();
  const std::string text = pattern(400'000);
  REQUIRE(c.send(text).status == IoStatus::ok);
  REQUIRE(c.stream->released() == 0);
  SECTION("here") { c.stream->abort(); }
  SECTION("there") { test::reset_connection(std::move(c.peer)); }
  CHECK(c.all_released());
  CHECK(c.send(text).status == IoStatus::failed);
}

TEST_CASE("a socket that was used for sends in place before is refused, and io_uring's are") {
  Counters counters;
  auto [first, second] = tcp_pair();
  const int one = 1;
  REQUIRE(::setsockopt(first.get(), SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0);
  CHECK_FALSE(TcpStream::adopt(first.release())->allow_in_place(kFrom, counters));
  if (!test::Ring::queue()) return;
  const auto stream = UringStream::adopt(test::Ring::queue(), second.release());
  CHECK_FALSE(stream->allow_in_place(kFrom, counters));
}

}  // namespace diwarp::llp
