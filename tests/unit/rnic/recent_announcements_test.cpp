// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/recent_announcements.h"

#include "counting_endpoint.h"
#include "support/catch.h"

using namespace diwarp::rnic;

TEST_CASE("recent announcements: another source counts for so many gathers") {
  RecentAnnouncements announcements;
  CountingEndpoint one, other;
  announcements.count_gather();
  CHECK_FALSE(announcements.has_other(one, 100));
  announcements.add(one);
  CHECK_FALSE(announcements.has_other(one, 100));
  CHECK(announcements.has_other(other, 0));
  announcements.count_gather();
  CHECK_FALSE(announcements.has_other(other, 0));
  CHECK(announcements.has_other(other, 1));
  announcements.count_gather();
  CHECK_FALSE(announcements.has_other(other, 1));
}

TEST_CASE("recent announcements: that a source announces input often does not hide another one") {
  RecentAnnouncements announcements;
  CountingEndpoint one, other;
  announcements.count_gather();
  announcements.add(other);
  for (int i = 0; i < 3; ++i) {
    announcements.count_gather();
    announcements.add(one);
  }
  CHECK(announcements.has_other(one, 3));
  CHECK_FALSE(announcements.has_other(one, 2));
  CHECK(announcements.has_other(other, 0));
}

TEST_CASE(
    "recent announcements: a source that goes out of service is forgotten, the other is not") {
  RecentAnnouncements announcements;
  CountingEndpoint one, other, third;
  announcements.add(one);
  announcements.add(other);
  announcements.forget(third);
  CHECK(announcements.has_other(one, 0));
  CHECK(announcements.has_other(other, 0));
  announcements.forget(other);
  CHECK_FALSE(announcements.has_other(one, 0));
}
