// SPDX-License-Identifier: Apache-2.0
// TCP sockets whose system calls fail now and then, or move a few bytes only.
#include <catch2/catch.hpp>
#include <cerrno>

#include "bytes.h"
#include "llp/tcp.h"
#include "raw_socket.h"
#include "syscalls.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::FaultsForNow;
using test::pattern;
using test::text_of;

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
  const std::string text = pattern(1 << 20);
  CHECK(move_all(*sender, *receiver, text) == text);
  CHECK(faults->injected > 0);
}

TEST_CASE("a stream that moves few bytes a call moves all of them in order") {
  auto [first, second] = test::tcp_pair();
  const auto sender = TcpStream::adopt(first.release());
  const auto receiver = TcpStream::adopt(second.release());
  FaultsForNow faults;
  faults->stream_bytes = GENERATE(1u, 7u, 1000u);
  const std::string text = pattern(20000);
  CHECK(move_all(*sender, *receiver, text) == text);
  CHECK(faults->injected > 0);
}

}  // namespace
}  // namespace diwarp::llp
