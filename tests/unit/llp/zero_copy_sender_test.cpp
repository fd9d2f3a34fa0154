// SPDX-License-Identifier: Apache-2.0
// Sends that the kernel does not copy: the effect on a stream's memory.
#include "llp/tcp/zero_copy_sender.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "backends.h"
#include "llp/poller.h"
#include "llp/tcp/tcp_stream.h"
#include "llp/uring/uring_stream.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/confined.h"
#include "support/contents.h"
#include "zero_copy_support.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::may_send_zero_copy;
using test::read_bytes;
using test::tcp_pair;
using test::text_pattern;

constexpr size_t kFrom = 10'000;

/// A stream that sends without copying over one end of a connection, and the other end raw.
struct ZeroCopyScene {
  ZeroCopyScene() {
    auto [first, second] = tcp_pair();
    stream = TcpStream::adopt(first.release());
    peer = std::move(second);
    REQUIRE(stream->allow_zero_copy(kFrom, counters));
  }
  /// So that the kernel keeps most of a long message at the sender, and does not copy it.
  void receive_little() {
    const int bytes = 16 << 10;
    REQUIRE(::setsockopt(peer.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0);
  }
  IoResult send(std::string_view text) {
    const ConstBytes piece = bytes_of(text);
    return stream->send_zero_copy({&piece, 1});
  }
  bool all_released() {
    for (int tries = 0; tries < 5000; ++tries) {
      if (stream->zero_copy_released() == stream->zero_copy_calls()) return true;
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

TEST_CASE("a zero-copy stream keeps long pieces in flight until the peer has them") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  c.receive_little();
  const std::string text = text_pattern(400'000);
  const IoResult sent = c.send(text);
  REQUIRE(sent.status == IoStatus::ok);
  REQUIRE(sent.bytes > 100'000);
  CHECK(c.stream->zero_copy_calls() == 1);
  CHECK(c.stream->zero_copy_released() == 0);
  CHECK(read_bytes(c.peer.get(), sent.bytes) == text.substr(0, sent.bytes));
  CHECK(c.all_released());
  CHECK(c.stream->zero_copy_released() == 1);
  CHECK(c.count(Counter::rc_zerocopy_sends) == 1);
  CHECK(c.count(Counter::rc_zerocopy_copied) == 1);  // loopback
  CHECK(c.count(Counter::rc_zerocopy_odd) == 0);
}

TEST_CASE("memory of a long piece is read after the call, that of short ones is not") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  c.receive_little();
  std::string head = text_pattern(kCopiedPiece, 1);
  std::string body = text_pattern(300'000, 2);
  std::string tail = text_pattern(7, 3);
  const std::string was = head + body + tail;
  const std::array pieces = {bytes_of(head), bytes_of(body), bytes_of(tail)};
  const IoResult sent = c.stream->send_zero_copy(pieces);
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

TEST_CASE("bytes sent without copying and copied in turn arrive in order, whatever their pieces") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  std::vector<std::string> messages;
  std::string all;
  for (size_t i = 0; i < 300; ++i) {
    messages.push_back(text_pattern(1 + (i * 7919) % 60'000, i));
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
      const IoResult sent = c.stream->send_zero_copy(pieces);
      REQUIRE(sent.status != IoStatus::failed);
      rest.remove_prefix(sent.bytes);
    }
    c.stream->zero_copy_released();
  }
  reader.join();
  CHECK(came == all);
  CHECK(c.all_released());
  CHECK(c.count(Counter::rc_zerocopy_sends) > 50);
}

TEST_CASE("one call takes all, though its short pieces are more than have room beside it") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  const size_t short_pieces = GENERATE(8U, 9U, 20U, 40U);
  const bool behind = GENERATE(false, true);
  CAPTURE(short_pieces, behind);
  const std::string text = text_pattern(short_pieces * kCopiedPiece + 2 * kFrom);
  std::vector<ConstBytes> pieces;
  std::string_view rest = text;
  const auto add = [&](size_t size) {
    pieces.push_back(bytes_of(rest.substr(0, size)));
    rest.remove_prefix(size);
  };
  add(kFrom);
  for (size_t i = 0; i < short_pieces; ++i) add(kCopiedPiece);
  if (behind) add(kFrom);
  const size_t given = text.size() - rest.size();
  const IoResult sent = c.stream->send_zero_copy(pieces);
  CHECK(sent.status == IoStatus::ok);
  CHECK(sent.bytes == given);
  CHECK(c.stream->zero_copy_calls() >= 1);
  CHECK(read_bytes(c.peer.get(), given) == text.substr(0, given));
  CHECK(c.all_released());
}

TEST_CASE("calls with little payload are copied, as are all of a stream that was not asked") {
  ZeroCopyScene c;
  std::vector<ConstBytes> pieces;
  const std::string text = text_pattern(100'000);
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
  CHECK(c.stream->send_zero_copy(pieces).status == IoStatus::ok);
  CHECK(c.stream->zero_copy_calls() == 0);
  CHECK(c.stream->zero_copy_released() == 0);
  CHECK(c.count(Counter::rc_zerocopy_sends) == 0);
}

TEST_CASE("a notice makes the descriptor poll as failed, and breaks nothing") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  Poller poller;
  int key = 0;
  REQUIRE(poller.try_add(c.stream->descriptor(), &key, false, false));
  const std::string text = text_pattern(20'000);
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

TEST_CASE("a stream that is reset has released everything, and so has one whose peer resets it") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  c.receive_little();
  const std::string text = text_pattern(400'000);
  REQUIRE(c.send(text).status == IoStatus::ok);
  REQUIRE(c.stream->zero_copy_released() == 0);
  SECTION("here") { c.stream->abort(); }
  SECTION("there") { test::reset_connection(std::move(c.peer)); }
  CHECK(c.all_released());
  CHECK(c.send(text).status == IoStatus::failed);
}

TEST_CASE(
    "a stream that sent without copying frees what it needed for that, once it does so no more") {
  if (!may_send_zero_copy()) return;
  ZeroCopyScene c;
  CHECK_FALSE(c.stream->trim());
  const std::string text = text_pattern(20'000);
  REQUIRE(c.send(text).bytes == text.size());
  REQUIRE(read_bytes(c.peer.get(), text.size()) == text);
  CHECK(c.stream->trim());
  REQUIRE(c.all_released());
  CHECK(c.stream->trim());
  CHECK_FALSE(c.stream->trim());
}

TEST_CASE("a process that may lock 64 KiB is told that 1 MiB is not sent without copying") {
  const int refusal = test::in_child(
      [] { return test::limit_locked_memory() ? test::zero_copy_refusal(size_t{1} << 20) : 1; });
  CHECK(refusal == ENOBUFS);
}

TEST_CASE("a socket that was used for zero-copy sends before is refused, and io_uring's are") {
  Counters counters;
  auto [first, second] = tcp_pair();
  const int one = 1;
  REQUIRE(::setsockopt(first.get(), SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0);
  CHECK_FALSE(TcpStream::adopt(first.release())->allow_zero_copy(kFrom, counters));
  if (!test::Ring::queue()) return;
  const auto stream = UringStream::adopt(test::Ring::queue(), second.release());
  CHECK_FALSE(stream->allow_zero_copy(kFrom, counters));
}

}  // namespace diwarp::llp
