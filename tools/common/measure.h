// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/control.h"
#include "common/options.h"
#include "common/report.h"
#include "common/session.h"

namespace diwarp::tools {

/// Collects what makes a run fail, so that the remaining rows still run.
class Verdict {
 public:
  void fail(const std::string& message);
  void check_loss(uint64_t lost, uint64_t sent, uint64_t size, double max_percent);

  /// Throws Failure with the first message, if there is one, and these hints to its cause.
  void pronounce(const std::vector<std::string>& why = {}) const;

 private:
  std::string message_;
};

/// One row, for each receiver and each way, at either end: measures and returns the figures. They
/// come to the server with the client's "done" message; a server of several clients adds its own.
struct RowPlays {
  std::function<std::vector<Json>(Device&, Peers, const Terms&, uint64_t size)> client;
  std::function<std::vector<Json>(Device&, Peers, const std::vector<Terms>&)> server;
};

/// The rows that a "done" message has. Throws Failure if it has none.
std::vector<Json> rows_in(const Json& done);

/// A whole run of a measuring tool: rows for each size, reported at both ends (of a loopback, by
/// this process). Throws what made it fail.
void run_measurement(const std::string& tool, const Ends& ends, const Measure& measure,
                     Caption caption, const std::vector<Column>& columns, const Verdict& verdict,
                     const RowPlays& plays);

}  // namespace diwarp::tools
