// SPDX-License-Identifier: Apache-2.0
#include "base/counters.h"

#include <cstddef>
#include <cstring>
#include <set>
#include <string_view>

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

TEST_CASE("meters go up and down by themselves") {
  Counters counters;
  counters.add(Meter::open_records, 3);
  counters.subtract(Meter::open_records, 2);
  counters.add_shared(Meter::queue_pairs, 2);
  counters.subtract_shared(Meter::queue_pairs);
  CHECK(counters.get(Meter::open_records) == 1);
  CHECK(counters.get(Meter::queue_pairs) == 1);
  CHECK(counters.get(Meter::completions) == 0);
}

TEST_CASE("every meter has a name that no counter has, and an explanation") {
  std::set<std::string_view> names;
  for (size_t i = 0; i < Counters::count(); ++i)
    names.insert(Counters::name(static_cast<Counter>(i)));
  for (size_t i = 0; i < Counters::meter_count(); ++i) {
    const auto meter = static_cast<Meter>(i);
    CHECK(names.insert(Counters::name(meter)).second);
    CHECK_FALSE(Counters::description(meter).empty());
  }
  static_assert(Counters::name(Meter::engine_work_ns) == "engine_work_ns");
  static_assert(Counters::kind(Meter::queue_pairs) == MeterKind::gauge);
  static_assert(Counters::kind(Meter::completions) == MeterKind::sum);
}

TEST_CASE("offsets lead to the values") {
  Counters counters;
  counters.add(Counter::events_dropped, 17);
  counters.add(Meter::engine_idle_ns, 23);
  const auto value_at = [&](size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, reinterpret_cast<const std::byte*>(&counters) + offset, sizeof value);
    return value;
  };
  CHECK(value_at(Counters::offset(Counter::events_dropped)) == 17);
  CHECK(value_at(Counters::offset(Meter::engine_idle_ns)) == 23);
}
