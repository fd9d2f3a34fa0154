// SPDX-License-Identifier: Apache-2.0
// The block of docs/logging.md.
#include <string>
#include <vector>

#include "base/log.h"
#include "diwarp/log.h"
#include "support/catch.h"

using namespace diwarp;

TEST_CASE("docs: a callback takes the lines of the log") {
#include "logging/where-lines-go.inc"
  log::debug("too low");
  log::info("a line");
  set_log_callback({});
  set_log_level(LogLevel::warn);
  CHECK(lines == std::vector<std::string>{"info: a line"});
}
