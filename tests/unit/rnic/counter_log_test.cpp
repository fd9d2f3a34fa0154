// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/counter_log.h"

#include <string>

#include "rnic/engine/engine.h"
#include "support/catch.h"
#include "support/log_lines.h"

using namespace diwarp;
using namespace diwarp::rnic;
using diwarp::test::LogLines;
using namespace std::chrono_literals;

namespace {

struct Scene {
  void tell(Counter counter, uint16_t port = 7000) {
    engine.exclusively(
        [&] { log.tell(counter, 5, Address::parse("10.0.0.2").with_port(port), {}); });
  }
  void advance(Duration by) {
    clock.advance(by);
    engine.poll_step();
  }

  Counters counters;
  ManualClock clock{Time(1000s)};
  Engine engine{{.progress = Progress::manual}, clock, counters};
  std::string device = "10.0.0.1";
  CounterLog log{engine, device};
};

}  // namespace

TEST_CASE("the first drop for a reason has a line, with the text of its counter") {
  LogLines lines(LogLevel::debug);
  Scene scene;
  scene.tell(Counter::drop_crc);
  const auto all = lines.all();
  REQUIRE(all.size() == 1);
  CHECK(all[0].level == LogLevel::debug);
  CHECK(all[0].device == "10.0.0.1");
  CHECK(all[0].qp_number == 5);
  CHECK(all[0].message ==
        "drop_crc, peer 10.0.0.2:7000: " + std::string(Counters::description(Counter::drop_crc)));
}

TEST_CASE("further drops for the same reason have one line a second, which counts them") {
  LogLines lines(LogLevel::debug);
  Scene scene;
  for (uint16_t i = 0; i < 1000; ++i) scene.tell(Counter::drop_crc, 7000 + i);
  CHECK(lines.all().size() == 1);
  scene.advance(CounterLog::kQuiet - 1ns);
  CHECK(lines.all().size() == 1);
  scene.advance(1ns);
  REQUIRE(lines.all().size() == 2);
  CHECK(lines.all()[1].message.starts_with("drop_crc, peer 10.0.0.2:7999: 999 more "));

  // The line that counts is followed by a quiet second as well.
  scene.tell(Counter::drop_crc);
  CHECK(lines.all().size() == 2);
  scene.advance(CounterLog::kQuiet);
  CHECK(lines.all().size() == 3);
  scene.advance(10 * CounterLog::kQuiet);
  CHECK(lines.all().size() == 3);
  scene.tell(Counter::drop_crc);
  CHECK(lines.all().size() == 4);
}

TEST_CASE("drops for other reasons have lines of their own") {
  LogLines lines(LogLevel::debug);
  Scene scene;
  scene.tell(Counter::drop_crc);
  scene.advance(300ms);
  scene.tell(Counter::drop_late);
  scene.tell(Counter::drop_late);
  scene.tell(Counter::drop_crc);
  CHECK(lines.all().size() == 2);
  scene.advance(700ms);
  REQUIRE(lines.all().size() == 3);
  CHECK(lines.all()[2].message.starts_with("drop_crc"));
  scene.advance(300ms);
  REQUIRE(lines.all().size() == 4);
  CHECK(lines.all()[3].message.starts_with("drop_late"));
}

TEST_CASE("drops are of level debug, and want of memory and refusals of level info") {
  LogLines lines(LogLevel::info);
  Scene scene;
  scene.tell(Counter::drop_crc);
  CHECK(lines.all().empty());
  scene.tell(Counter::drop_no_memory);
  scene.tell(Counter::challenges_sent);
  CHECK(lines.all().size() == 2);
}

TEST_CASE("counters are counted whether or not the log tells of them") {
  Scene scene;
  LoggedCounters logged(scene.counters, scene.log);
  logged.set_queue_pair(5);
  const Address peer = Address::parse("10.0.0.2").with_port(7000);
  const auto add = [&] {
    scene.engine.exclusively([&] {
      logged.add(Counter::drop_crc, peer);
      logged.add(Counter::errors_sent, peer, TerminateCode{.layer = 1, .type = 1, .code = 0});
      LoggedCounters(scene.counters).add(Counter::drop_crc, peer);
    });
  };
  {
    LogLines off(LogLevel::warn);
    add();
    CHECK(off.all().empty());
  }
  LogLines lines(LogLevel::debug);
  add();
  CHECK(scene.counters.get(Counter::drop_crc) == 4);
  CHECK(scene.counters.get(Counter::errors_sent) == 2);
  REQUIRE(lines.all().size() == 2);
  CHECK(lines.all()[1].message.ends_with(
      "(" + to_string(TerminateCode{.layer = 1, .type = 1, .code = 0}) + ")"));
}
