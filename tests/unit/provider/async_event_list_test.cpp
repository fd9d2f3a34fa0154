// SPDX-License-Identifier: Apache-2.0
#include "provider/async_event_list.h"

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::provider;

TEST_CASE("events come in order, with one wake each") {
  AsyncEventList events;
  CHECK_FALSE(events.pop());
  CHECK(events.push({.type = AsyncEventType::port_error}));
  CHECK(events.push({.type = AsyncEventType::port_active}));
  for (const AsyncEventType type : {AsyncEventType::port_error, AsyncEventType::port_active}) {
    CHECK(events.blocking_wait().wait(Duration::zero()));
    const auto event = events.pop();
    REQUIRE(event);
    CHECK(event->type == type);
  }
  CHECK_FALSE(events.blocking_wait().wait(Duration::zero()));
}

TEST_CASE("the oldest event gives way, and push() says so") {
  AsyncEventList events;
  for (uint32_t i = 0; i < kMaxEvents; ++i) REQUIRE(events.push({.qp_number = i}));
  CHECK_FALSE(events.push({.qp_number = kMaxEvents}));
  CHECK(events.pop()->qp_number == 1);
}
