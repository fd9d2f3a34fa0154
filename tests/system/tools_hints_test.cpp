// SPDX-License-Identifier: Apache-2.0
// The sentences that tools add to "so many messages got lost".
#include "common/hints.h"

#include <string>

#include "support/catch.h"

namespace diwarp::tools {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("hints: where nothing tells why, nothing is said") {
  CHECK(hints_of(LossFacts{}).empty());
  CHECK(hints_of({.counters = {{"rx_overflow", 0}, {"rx_datagrams", 9}, {"unheard_of", 3}},
                  .errors = {},
                  .receive_buffer = {}})
            .empty());
  CHECK(with_hints("All is lost.", {}) == "All is lost.");
  CHECK(with_hints("All is lost.", {"Because.", "And."}) == "All is lost. Because. And.");
}

TEST_CASE("hints: each cause has a sentence with its cure, and the most certain one is first") {
  struct Case {
    const char* counter;
    const char* cure;
  };
  for (const Case& one :
       {Case{"rx_overflow", "net.core.rmem_max"}, Case{"local_overflow", "--local-ring"},
        Case{"drop_no_receive", "--window"}, Case{"mtu_black_holes", "--segment"},
        Case{"loopback_to_remote", "--device"}, Case{"port_unreachable", "start the peer"},
        Case{"host_unreachable", "routes"}, Case{"path_prohibited", "firewall"},
        Case{"rd_silent", "firewall"}, Case{"drop_crc", "damages"},
        Case{"impaired_dropped", "unset"}, Case{"message_timeouts", "--segment"},
        Case{"backlog_drops", "net.core.netdev_max_backlog"}}) {
    CAPTURE(one.counter);
    const auto hints =
        hints_of({.counters = {{one.counter, 17}}, .errors = {}, .receive_buffer = {}});
    REQUIRE(hints.size() == 1);
    CHECK(has(hints[0], one.cure));
    CHECK(hints[0].back() == '.');
  }
  const auto both = hints_of({.counters = {{"backlog_drops", 5}, {"rx_overflow", 17}},
                              .errors = {},
                              .receive_buffer = {}});
  REQUIRE(both.size() == 2);
  CHECK(has(both[0], "17 datagrams"));
  CHECK(has(both[1], "whole host"));
}

TEST_CASE("hints: a small receive buffer is told with what it has and what was asked for") {
  const auto hints = hints_of({.counters = {{"rx_overflow", 3}},
                               .errors = {},
                               .receive_buffer = {.asked = 8388608, .granted = 212992}});
  REQUIRE(hints.size() == 1);
  CHECK(has(hints[0], "of 212992 bytes (8388608 were asked for)"));
  const auto enough = hints_of({.counters = {{"rx_overflow", 3}},
                                .errors = {},
                                .receive_buffer = {.asked = 65536, .granted = 65536}});
  CHECK_FALSE(has(enough[0], "asked for"));
}

TEST_CASE("hints: an entry of the error queue says more than its counter") {
  DatagramError error;
  error.peer = Address::parse("10.0.0.2:4791");
  error.kind = DatagramErrorKind::mtu_black_hole;
  error.datagram_bytes = 1472;
  const auto hints =
      hints_of({.counters = {{"mtu_black_holes", 1}}, .errors = {error}, .receive_buffer = {}});
  REQUIRE(hints.size() == 1);
  CHECK(has(hints[0], "Datagrams of 1472 bytes to 10.0.0.2:4791 vanish, smaller ones get through"));
}

}  // namespace
}  // namespace diwarp::tools
