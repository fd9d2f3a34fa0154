// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>

#include "llp/memory/memory_network.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::text_of;
using test::text_pattern;

IoResult send_text(Stream& stream, std::string_view text) {
  const ConstBytes piece = bytes_of(text);
  return stream.send({&piece, 1});
}

/// What one receive() gives; its status must be ok.
std::string receive_text(Stream& stream, size_t most = 4096) {
  std::string buffer(most, '\0');
  const IoResult result = stream.receive(std::as_writable_bytes(std::span(buffer)));
  REQUIRE(result.status == IoStatus::ok);
  REQUIRE(result.bytes > 0);
  return buffer.substr(0, result.bytes);
}

IoResult receive_any(Stream& stream) {
  std::array<std::byte, 4096> buffer;
  return stream.receive(buffer);
}

TEST_CASE("bytes pass a memory stream in both directions, in order") {
  auto [a, b] = memory_stream_pair();
  const std::array<ConstBytes, 3> pieces = {bytes_of("one"), bytes_of(""), bytes_of("two")};
  const IoResult sent = a->send(pieces);
  CHECK(sent.status == IoStatus::ok);
  CHECK(sent.bytes == 6);
  CHECK(receive_text(*b, 4) == "onet");
  CHECK(receive_text(*b) == "wo");
  CHECK(receive_any(*b).status == IoStatus::would_block);
  CHECK(send_text(*b, "back").status == IoStatus::ok);
  CHECK(receive_text(*a) == "back");
}

TEST_CASE("a memory stream has the segment size it was given, and two addresses") {
  auto [a, b] = memory_stream_pair(100, 777);
  CHECK(a->maximum_segment() == 777);
  CHECK(b->maximum_segment() == 777);
  CHECK(a->local_address() == b->peer_address());
  CHECK(a->peer_address() == b->local_address());
  CHECK(a->local_address() != b->local_address());
}

TEST_CASE("a memory stream holds what its buffer holds, across its wrap") {
  auto [a, b] = memory_stream_pair(10);
  const std::string text = text_pattern(100);
  size_t sent = 0;
  std::string received;
  while (received.size() < text.size()) {
    const IoResult result = send_text(*a, std::string_view(text).substr(sent));
    CHECK(result.status != IoStatus::failed);
    sent += result.bytes;
    CHECK(sent - received.size() <= 10);
    received += receive_text(*b, 7);
  }
  CHECK(received == text);
  CHECK(send_text(*a, text_pattern(11)).bytes == 10);
  CHECK(send_text(*a, "x").status == IoStatus::would_block);
}

TEST_CASE("after shutdown_send a memory stream is read to its end") {
  auto [a, b] = memory_stream_pair();
  send_text(*a, "last");
  a->shutdown_send();
  CHECK(send_text(*a, "x").error == EPIPE);
  CHECK(receive_text(*b) == "last");
  CHECK(receive_any(*b).status == IoStatus::closed);
  CHECK(send_text(*b, "reply").status == IoStatus::ok);
  CHECK(receive_text(*a) == "reply");
}

TEST_CASE("an aborted memory stream fails at both ends with ECONNRESET") {
  auto [a, b] = memory_stream_pair();
  send_text(*a, "unread");
  a->abort();
  for (Stream* end : {a.get(), b.get()}) {
    CHECK(receive_any(*end).status == IoStatus::failed);
    CHECK(receive_any(*end).error == ECONNRESET);
    CHECK(send_text(*end, "x").error == ECONNRESET);
  }
}

TEST_CASE("an aborted memory stream tells both ends what broke it") {
  auto [a, b] = memory_stream_pair(16, 1460);
  CHECK(a->error() == 0);
  b->shutdown_send();
  CHECK(a->error() == 0);
  b->abort();
  CHECK(a->error() == ECONNRESET);
  CHECK(b->error() == ECONNRESET);
}

TEST_CASE("destroying a memory stream ends it in order when all was read") {
  auto [a, b] = memory_stream_pair();
  send_text(*a, "will");
  a.reset();
  CHECK(receive_text(*b) == "will");
  CHECK(receive_any(*b).status == IoStatus::closed);
  CHECK(send_text(*b, "into the void").status == IoStatus::failed);
}

TEST_CASE("destroying a memory stream with unread bytes resets the other end") {
  auto [a, b] = memory_stream_pair();
  send_text(*b, "never read");
  a.reset();
  CHECK(receive_any(*b).error == ECONNRESET);
}

TEST_CASE("a memory stream tells when it may be read or written again") {
  int a_calls = 0;  // outlive the streams, which tell of each other's end
  int b_calls = 0;
  auto [a, b] = memory_stream_pair(4);
  a->on_ready([&] { ++a_calls; });
  b->on_ready([&] { ++b_calls; });
  CHECK(b_calls == 0);
  send_text(*a, "full");
  CHECK(b_calls == 1);
  CHECK(a_calls == 0);
  CHECK(send_text(*a, "x").status == IoStatus::would_block);
  receive_text(*b, 1);
  CHECK(a_calls == 1);
  a->shutdown_send();
  CHECK(b_calls == 2);
  b->abort();
  CHECK(a_calls == 2);
}

TEST_CASE("a memory stream tells at once when bytes wait for a new callback") {
  auto [a, b] = memory_stream_pair();
  send_text(*a, "early");
  int calls = 0;
  b->on_ready([&] { ++calls; });
  CHECK(calls == 1);
}

}  // namespace
}  // namespace diwarp::llp
