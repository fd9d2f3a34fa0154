// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <string_view>

#include "datagrams.h"
#include "support/bytes.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::texts;

const Address kFrom = Address::parse("192.0.2.1:7");

/// Adds a datagram, in the batch's slot for it.
bool add(ReceiveBatch& batch, std::string_view text) {
  const size_t index = std::min(batch.datagrams().size(), batch.slots() - 1);
  const Bytes bytes = batch.slot(index).first(text.size());
  std::ranges::copy(bytes_of(text), bytes.begin());
  return batch.add(kFrom, bytes);
}

TEST_CASE("a receive batch hands out what was added, in order, until it is cleared") {
  ReceiveBatch batch(2, 100, 3);
  CHECK(batch.room() == 3);
  CHECK(add(batch, "one"));
  CHECK(add(batch, ""));
  CHECK(texts(batch) == std::vector<std::string>{"one", ""});
  CHECK(batch.datagrams()[0].from == kFrom);
  CHECK(batch.room() == 1);
  batch.clear();
  CHECK(batch.datagrams().empty());
  CHECK(batch.room() == 3);
}

TEST_CASE("a receive batch takes no more datagrams than it was made for") {
  ReceiveBatch batch(3, 100, 2);
  CHECK(add(batch, "a"));
  CHECK(add(batch, "b"));
  CHECK_FALSE(add(batch, "c"));
  CHECK(texts(batch) == std::vector<std::string>{"a", "b"});
}

TEST_CASE("the slots of a receive batch have the size asked for and do not overlap") {
  ReceiveBatch batch(3, 50, 1);
  REQUIRE(batch.slots() == 3);
  for (size_t i = 0; i < 3; ++i) {
    REQUIRE(batch.slot(i).size() == 50);
    std::fill(batch.slot(i).begin(), batch.slot(i).end(), std::byte(i));
  }
  for (size_t i = 0; i < 3; ++i) {
    CHECK(batch.slot(i).front() == std::byte(i));
    CHECK(batch.slot(i).back() == std::byte(i));
  }
}

}  // namespace
}  // namespace diwarp::llp
