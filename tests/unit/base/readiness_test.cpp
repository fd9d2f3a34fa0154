// SPDX-License-Identifier: Apache-2.0
#include "base/readiness.h"

#include <poll.h>

#include <algorithm>
#include <chrono>

#include "base/blocking_wait.h"
#include "base/host_addresses.h"
#include "diwarp/error.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

bool readable(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

}  // namespace

TEST_CASE("a Readiness polls readable while any of its descriptors does") {
  BlockingWait first;
  BlockingWait second;
  Readiness both;
  both.add(first.descriptor());
  both.add(second.descriptor());
  CHECK_FALSE(readable(both.descriptor()));
  second.wake();
  CHECK(readable(both.descriptor()));
  both.wait(std::chrono::hours(1));  // returns at once
  CHECK(second.wait(Duration::zero()));
  CHECK_FALSE(readable(both.descriptor()));
  both.wait(std::chrono::milliseconds(1));
}

TEST_CASE("a Readiness takes no descriptor that is not open") {
  Readiness none;
  CHECK_THROWS_AS(none.add(-1), Error);
}

TEST_CASE("the loopback address is one of this host's, without a port") {
  const auto all = host_addresses();
  CHECK(std::ranges::find(all, Address::parse("127.0.0.1")) != all.end());
}
