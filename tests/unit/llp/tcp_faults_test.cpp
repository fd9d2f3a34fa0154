// SPDX-License-Identifier: Apache-2.0
// TCP sockets whose system calls fail now and then, or move a few bytes only.
#include <cerrno>

#include "llp/tcp/tcp_stream.h"
#include "llp/tcp/zero_copy_sender.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"
#include "syscalls.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::FaultsForNow;
using test::text_of;
using test::text_pattern;

/// Moves all of `text`, both ends in turn; what came.
std::string move_all(Stream& from, Stream& to, const std::string& text) {
  std::string came;
  std::string_view rest = text;
  std::vector<std::byte> buffer(70000);
  for (int calls = 0; calls < 1000000 && came.size() < text.size(); ++calls) {
    if (!rest.empty()) {
      const size_t half = rest.size() / 2;
      const std::array pieces = {bytes_of(rest.substr(0, half)), bytes_of(rest.substr(half))};
      const IoResult sent = from.send(pieces);
      if (sent.status == IoStatus::failed) break;
      rest.remove_prefix(sent.bytes);
    }
    const IoResult got = to.receive(buffer);
    if (got.status == IoStatus::failed || got.status == IoStatus::closed) break;
    came += text_of(ConstBytes(buffer).first(got.bytes));
  }
  return came;
}

TEST_CASE("a stream whose calls fail for want of memory or room now and then loses nothing") {
  const int error = GENERATE(EAGAIN, ENOBUFS, ENOMEM, EINTR);
  CAPTURE(error);
  auto [first, second] = test::tcp_pair();
  const auto sender = TcpStream::adopt(first.release());
  const auto receiver = TcpStream::adopt(second.release());
  FaultsForNow faults;
  faults->send_error = faults->receive_error = error;
  faults->send_every = faults->receive_every = 2;
  const std::string text = text_pattern(1 << 20);
  CHECK(move_all(*sender, *receiver, text) == text);
  CHECK(faults->injected > 0);
}

TEST_CASE("a stream that moves few bytes a call moves all of them in order") {
  auto [first, second] = test::tcp_pair();
  const auto sender = TcpStream::adopt(first.release());
  const auto receiver = TcpStream::adopt(second.release());
  FaultsForNow faults;
  faults->stream_bytes = GENERATE(1u, 7u, 1000u);
  const std::string text = text_pattern(20000);
  CHECK(move_all(*sender, *receiver, text) == text);
  CHECK(faults->injected > 0);
}

// --- Zero-copy sends.

/// A stream that sends without copying, and one that takes what it sends.
struct ZeroCopyPair {
  ZeroCopyPair() {
    auto [first, second] = test::tcp_pair();
    sender = TcpStream::adopt(first.release());
    receiver = TcpStream::adopt(second.release());
  }
  /// Sends `text` at once, and takes it.
  void move(const std::string& text) {
    const ConstBytes piece = bytes_of(text);
    REQUIRE(sender->send_zero_copy({&piece, 1}).bytes == text.size());
    std::string came;
    std::vector<std::byte> buffer(text.size());
    for (int calls = 0; calls < 1000000 && came.size() < text.size(); ++calls)
      came += text_of(ConstBytes(buffer).first(receiver->receive(buffer).bytes));
    CHECK(came == text);
  }

  Counters counters;
  std::unique_ptr<TcpStream> sender;
  std::unique_ptr<TcpStream> receiver;
};

TEST_CASE("a send that finds no memory to leave without a copy is copied at once") {
  const int error = GENERATE(ENOBUFS, EFAULT);
  CAPTURE(error);
  ZeroCopyPair pair;
  REQUIRE(pair.sender->allow_zero_copy(10'000, pair.counters));
  FaultsForNow faults;
  faults->zerocopy_error = error;
  pair.move(text_pattern(20'000));
  CHECK(pair.sender->zero_copy_calls() == 0);
  CHECK(pair.counters.get(Counter::rc_zerocopy_no_memory) == 1);
  CHECK(pair.counters.get(Counter::rc_zerocopy_sends) == 0);
}

TEST_CASE("a stream whose system refuses zero-copy sends copies") {
  ZeroCopyPair pair;
  FaultsForNow faults;
  faults->zerocopy_option_error = ENOTSUP;
  CHECK_FALSE(pair.sender->allow_zero_copy(10'000, pair.counters));
  pair.move(text_pattern(20'000));
  CHECK(pair.sender->zero_copy_calls() == 0);
}

TEST_CASE("a stream of whose zero-copy sends nothing is reported copies from a number of them on") {
  ZeroCopyPair pair;
  REQUIRE(pair.sender->allow_zero_copy(10'000, pair.counters));
  FaultsForNow faults;
  faults->hide_notices = 1;
  for (uint32_t i = 0; i < 2 * kMaxZeroCopyCalls; ++i) pair.move(text_pattern(20'000, i));
  CHECK(pair.sender->zero_copy_released() == 0);
  // The kernel's own bound may come first.
  const uint64_t zero_copy = pair.counters.get(Counter::rc_zerocopy_sends);
  CHECK(zero_copy <= kMaxZeroCopyCalls);
  CHECK(pair.counters.get(Counter::rc_zerocopy_full) +
            pair.counters.get(Counter::rc_zerocopy_no_memory) + zero_copy ==
        2 * kMaxZeroCopyCalls);
  faults->hide_notices = 0;
  CHECK(pair.sender->zero_copy_released() == zero_copy);
}

}  // namespace
}  // namespace diwarp::llp
