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

  /// Throws Failure with the first message, if there is one.
  void pronounce() const;

 private:
  std::string message_;
};

/// One row at either end: measures and returns the row's figures, at the client those of each
/// receiver. They come to the server with its "done" message.
struct RowPlays {
  std::function<std::vector<Json>(Device&, Peers, const Terms&, uint64_t size)> client;
  std::function<Json(Device&, Control&, const Terms&)> server;
};

/// A whole run of a measuring tool: one row for each size, reported at both ends (of a loopback, at
/// the client's). Throws what made it fail.
void run_measurement(const std::string& tool, const Ends& ends, const Measure& measure,
                     const std::vector<Column>& columns, const Verdict& verdict,
                     const RowPlays& plays);

}  // namespace diwarp::tools
