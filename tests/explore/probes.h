// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "ends.h"
#include "ledger.h"
#include "scenario.h"
#include "testbed.h"
#include "trace.h"

namespace diwarp::explore {

/// More requests than the scenario has: to open the association, and to see what the queue pairs
/// can still do afterwards.
class Probes {
 public:
  Probes(Testbed& bed, const Scenario& scenario, Ledger& ledger, const Trace& trace, Ends& ends)
      : bed_(bed), scenario_(scenario), ledger_(ledger), trace_(trace), ends_(ends) {}

  /// One Send each way.
  void open();
  /// From here on the wire holds nothing. Those whose peer restarted, or was forgotten, or has
  /// something on the way that never gets through, find out when they next speak.
  void greet();
  void probe();

 private:
  void probe_receives();
  void probe_places(size_t side);

  Testbed& bed_;
  const Scenario& scenario_;
  Ledger& ledger_;
  const Trace& trace_;
  Ends& ends_;
};

}  // namespace diwarp::explore
