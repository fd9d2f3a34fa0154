// SPDX-License-Identifier: Apache-2.0
#include "base/counters.h"

#include <set>

#include "support/catch.h"

using namespace diwarp;

TEST_CASE("counters start at zero and count by themselves") {
  Counters counters;
  CHECK(counters.get(Counter::drop_crc) == 0);
  counters.add(Counter::drop_crc);
  counters.add(Counter::rx_bytes, 1500);
  counters.add_shared(Counter::rx_bytes, 10);
  CHECK(counters.get(Counter::drop_crc) == 1);
  CHECK(counters.get(Counter::rx_bytes) == 1510);
  CHECK(counters.get(Counter::rx_datagrams) == 0);
}

TEST_CASE("every counter has its own name and explanation") {
  std::set<std::string_view> names;
  for (size_t i = 0; i < Counters::count(); ++i) {
    const auto counter = static_cast<Counter>(i);
    names.insert(Counters::name(counter));
    CHECK_FALSE(Counters::description(counter).empty());
  }
  CHECK(names.size() == Counters::count());
  static_assert(Counters::name(Counter::rx_datagrams) == "rx_datagrams");
  static_assert(Counters::name(Counter::mpa_timeouts) == "mpa_timeouts");
}
