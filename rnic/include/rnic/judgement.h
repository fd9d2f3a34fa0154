// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/counters.h"
#include "ddp/stag_table.h"
#include "diwarp/attributes.h"

namespace diwarp::rnic {

/// What a segment over datagrams came to.
struct Judgement {
  std::optional<Counter> drop = {};         ///< it was dropped, for this reason
  std::optional<TerminateCode> fault = {};  ///< and its source, and the application, are to be told

  static Judgement taken() { return {}; }
  static Judgement dropped(Counter reason) { return {.drop = reason}; }
};

/// What a fault in naming memory is over datagrams (the codes of RFC 5041 section 7.2 and RFC 5040
/// section 4.8): of a Write-Record, which DDP places, or of a Read Request, which RDMAP answers.
Judgement judge_tagged(ddp::RegionFault fault);
Judgement judge_read(ddp::RegionFault fault);

}  // namespace diwarp::rnic
