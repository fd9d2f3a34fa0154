// SPDX-License-Identifier: Apache-2.0
// What the kernel's table of its backlogs says, and that a text of another form says nothing.
#include "llp/host_backlog.h"

#include <string>

#include "support/catch.h"

namespace diwarp::llp {
namespace {

constexpr const char* kLine =
    "0000272d 0000000a 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 "
    "00000000 00000000 00000000 00000001 00000000 00000000\n";

TEST_CASE("backlog: the drops of all processors are added up") {
  CHECK(backlog_drops_in(kLine) == 10);
  const std::string lines = std::string(kLine).append("00000000 ffffffff 00000000\n");
  CHECK(backlog_drops_in(lines) == 10 + uint64_t{0xFFFFFFFF});
  CHECK(backlog_drops_in("1 2") == 2);
  CHECK(backlog_drops_in("1 2 3") == 2);
}

TEST_CASE("backlog: a text of another form tells nothing") {
  for (const char* text :
       {"", "\n", "1", "1 ", " 2 3", "1 x", "1 2x 3", "1 -2 3", "1 100000000 3", "1 2\n\n1 2"}) {
    CAPTURE(text);
    CHECK_FALSE(backlog_drops_in(text));
  }
}

TEST_CASE("backlog: the host's own never decreases") {
  const uint64_t before = backlog_drops_of_host();
  CHECK(backlog_drops_of_host() >= before);
}

}  // namespace
}  // namespace diwarp::llp
