// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "diwarp/types.h"

using namespace diwarp;

TEST_CASE("every type of flags can be combined, intersected and asked") {
  STATIC_REQUIRE(Flags<Access>);
  STATIC_REQUIRE(Flags<SendFlags>);
  STATIC_REQUIRE_FALSE(Flags<QpType>);

  constexpr SendFlags both = SendFlags::signaled | SendFlags::fence;
  STATIC_REQUIRE(has(both, SendFlags::fence));
  STATIC_REQUIRE(has(both, SendFlags::signaled | SendFlags::fence));
  STATIC_REQUIRE_FALSE(has(both, SendFlags::solicited));
  STATIC_REQUIRE_FALSE(has(both, SendFlags::fence | SendFlags::solicited));
  STATIC_REQUIRE((both & SendFlags::fence) == SendFlags::fence);
  STATIC_REQUIRE((both & SendFlags::solicited) == SendFlags::none);

  constexpr Access local = Access::local_write | Access::window_bind;
  STATIC_REQUIRE(has(local, Access::local_write));
  STATIC_REQUIRE_FALSE(has(local, Access::local_write | Access::remote_write));
}

TEST_CASE("any flags have no flag at all") {
  STATIC_REQUIRE(has(SendFlags::none, SendFlags::none));
  STATIC_REQUIRE(has(Access::local_write, Access::none));
  STATIC_REQUIRE_FALSE(has(Access::none, Access::local_write));
}
