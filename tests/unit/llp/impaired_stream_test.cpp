// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>

#include "llp/impairment/impairment.h"
#include "llp/memory/memory_network.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using namespace std::chrono_literals;
using test::bytes_of;
using test::text_pattern;

/// A peer, and a stream that impairs what it receives from it.
struct Rig {
  explicit Rig(const StreamImpairment& impairment) {
    auto [a, b] = memory_stream_pair(size_t{1} << 20);
    peer = std::move(a);
    stream = std::make_unique<ImpairedStream>(std::move(b), impairment, clock);
  }

  void send(std::string_view text) const {
    const ConstBytes piece = bytes_of(text);
    REQUIRE(peer->send({&piece, 1}).bytes == text.size());
  }

  /// Receives until something other than bytes comes.
  std::string drain(size_t most = 4096) {
    std::string result;
    std::string buffer(most, '\0');
    for (;;) {
      last = stream->receive(std::as_writable_bytes(std::span(buffer)));
      if (last.status != IoStatus::ok) return result;
      chunks.push_back(last.bytes);
      result += buffer.substr(0, last.bytes);
    }
  }

  ManualClock clock;
  std::unique_ptr<Stream> peer;
  std::unique_ptr<ImpairedStream> stream;
  std::vector<size_t> chunks;
  IoResult last;
};

TEST_CASE("a stream impaired by nothing is as the stream below") {
  Rig rig({});
  rig.send(text_pattern(5000));
  rig.peer->shutdown_send();
  CHECK(rig.drain() == text_pattern(5000));
  CHECK(rig.last.status == IoStatus::closed);
  CHECK(rig.stream->maximum_segment() == rig.peer->maximum_segment());
  CHECK(rig.stream->local_address() == rig.peer->peer_address());
  const ConstBytes piece = bytes_of("up");
  CHECK(rig.stream->send({&piece, 1}).bytes == 2);
  rig.stream->abort();
  std::array<std::byte, 4> buffer;
  CHECK(rig.peer->receive(buffer).error == ECONNRESET);
}

TEST_CASE("the byte at a chosen offset is changed, and no other, however it is read") {
  StreamImpairment impairment;
  impairment.corrupt_at = 1000;
  for (size_t most : {size_t{1}, size_t{7}, size_t{4096}}) {
    Rig rig(impairment);
    rig.send(text_pattern(2000));
    const std::string received = rig.drain(most);
    REQUIRE(received.size() == 2000);
    for (size_t i = 0; i < 2000; ++i) {
      const bool same = received[i] == text_pattern(2000)[i];
      if (same != (i != 1000)) FAIL("at " << i);
    }
  }
}

TEST_CASE("bytes are changed with the probability given, in places that the seed chooses") {
  StreamImpairment impairment;
  impairment.seed = 9;
  impairment.corrupt = 0.1;
  const std::string original(20000, 'o');
  Rig rig(impairment);
  rig.send(original);
  const std::string received = rig.drain();
  const auto changed = static_cast<size_t>(
      std::count_if(received.begin(), received.end(), [](char c) { return c != 'o'; }));
  // Five standard deviations of 42.
  CHECK(changed > 1790);
  CHECK(changed < 2210);

  impairment.max_chunk = 3;
  Rig chunked(impairment);
  chunked.send(original);
  CHECK(chunked.drain() == received);
  impairment.seed = 10;
  Rig other(impairment);
  other.send(original);
  CHECK(other.drain() != received);
}

TEST_CASE("a stream that is cut gives the bytes before the cut, then fails, as its peer does") {
  StreamImpairment impairment;
  impairment.cut_after = 1234;
  Rig rig(impairment);
  rig.send(text_pattern(5000));
  CHECK(rig.drain() == text_pattern(5000).substr(0, 1234));
  CHECK(rig.last.status == IoStatus::failed);
  CHECK(rig.last.error == ECONNRESET);
  std::array<std::byte, 4> buffer;
  CHECK(rig.peer->receive(buffer).error == ECONNRESET);
}

TEST_CASE("chunks are of random sizes up to the limit, and lose nothing") {
  StreamImpairment impairment;
  impairment.max_chunk = 5;
  Rig rig(impairment);
  rig.send(text_pattern(3000));
  CHECK(rig.drain() == text_pattern(3000));
  std::array<size_t, 6> seen{};
  for (size_t chunk : rig.chunks) {
    REQUIRE(chunk <= 5);
    ++seen[chunk];
  }
  for (size_t size = 1; size <= 5; ++size) CHECK(seen[size] > 50);
}

TEST_CASE("delayed bytes come when they are due, and the end after them") {
  StreamImpairment impairment;
  impairment.delay = 10ms;
  Rig rig(impairment);
  rig.send("one");
  CHECK(rig.drain().empty());
  CHECK(rig.last.status == IoStatus::would_block);
  rig.send("two");
  rig.peer->shutdown_send();
  rig.clock.advance(9ms);
  CHECK(rig.drain().empty());
  rig.clock.advance(1ms);
  CHECK(rig.drain(2) == "one");
  CHECK(rig.last.status == IoStatus::would_block);
  rig.clock.advance(10ms);
  CHECK(rig.drain() == "two");
  CHECK(rig.last.status == IoStatus::closed);
}

}  // namespace
}  // namespace diwarp::llp
