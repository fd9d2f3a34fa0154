// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/startup_exchange.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace {

mpa::StartupFrame request(std::string_view text) { return {.private_data = test::bytes_of(text)}; }

std::vector<std::byte> encoded(const mpa::StartupFrame& frame) {
  std::vector<std::byte> bytes(mpa::startup_bytes(frame));
  mpa::encode(frame, bytes);
  return bytes;
}

/// The peer's next bytes.
void come(StartupExchange& exchange, ConstBytes bytes) {
  REQUIRE(exchange.room().size() >= bytes.size());
  std::copy(bytes.begin(), bytes.end(), exchange.room().begin());
  exchange.count_received(bytes.size());
}

}  // namespace

TEST_CASE("startup exchange: the request leaves once, in as many parts as the stream takes") {
  StartupExchange exchange;
  CHECK_FALSE(exchange.requested());
  const mpa::StartupFrame frame = request("hello");
  exchange.begin(frame);
  CHECK(exchange.requested());
  std::vector<std::byte> sent;
  for (const size_t part : {size_t{1}, size_t{0}, size_t{19}}) {
    const ConstBytes bytes = exchange.unsent().first(part);
    sent.insert(sent.end(), bytes.begin(), bytes.end());
    exchange.count_sent(part);
  }
  const ConstBytes rest = exchange.unsent();
  CHECK(rest.size() == 5);
  sent.insert(sent.end(), rest.begin(), rest.end());
  exchange.count_sent(rest.size());
  CHECK(exchange.unsent().empty());
  CHECK(sent == encoded(frame));
}

TEST_CASE("startup exchange: the reply comes in parts, and the longest one has room") {
  StartupExchange exchange;
  exchange.begin(request(""));
  CHECK(exchange.received().empty());
  const std::string longest(mpa::kMaxPrivateData, 'x');
  const std::vector<std::byte> reply =
      encoded({.kind = mpa::FrameKind::reply, .private_data = test::bytes_of(longest)});
  REQUIRE(reply.size() == mpa::kMaxStartupBytes);
  come(exchange, ConstBytes(reply).first(20));
  CHECK(test::copy(exchange.received()) == test::copy(ConstBytes(reply).first(20)));
  come(exchange, ConstBytes(reply).subspan(20));
  CHECK(test::copy(exchange.received()) == reply);
}

TEST_CASE("startup exchange: another one begins with nothing of the one before") {
  StartupExchange exchange;
  exchange.begin(request("a long text"));
  exchange.count_sent(exchange.unsent().size());
  come(exchange, test::bytes_of("MPA"));
  const size_t room = exchange.room().size();
  exchange.reset();
  CHECK_FALSE(exchange.requested());
  const mpa::StartupFrame next = request("short");
  exchange.begin(next);
  CHECK(exchange.requested());
  CHECK(test::copy(exchange.unsent()) == encoded(next));
  CHECK(exchange.received().empty());
  CHECK(exchange.room().size() == room + 3);
}
