// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "base/counters.h"
#include "ddp/stag_table.h"
#include "diwarp/attributes.h"
#include "rdmap/opcodes.h"

namespace diwarp::rnic {

/// The verdict on a segment over datagrams.
struct Verdict {
  std::optional<Counter> drop = {};         ///< it was dropped, for this reason
  std::optional<TerminateCode> fault = {};  ///< and its source, and the application, are to be told
  std::optional<TerminateCode> told = {};   ///< this to the source, where it may not know the fault

  static Verdict accepted() { return {}; }
  static Verdict dropped(Counter reason) { return {.drop = reason}; }
};

/// The verdict on a fault in naming memory over datagrams (the codes of RFC 5041 section 7.2 and
/// RFC 5040 section 4.8): of a Write-Record, which DDP places, or of a Read Request, which RDMAP
/// answers.
Verdict tagged_verdict(ddp::RegionFault fault);
Verdict read_verdict(ddp::RegionFault fault);

/// The code that tells a source that was not validated of any fault in naming memory: that of an
/// unknown STag, so that it cannot tell a wrong offset, or a right that is missing, from that.
TerminateCode concealed_fault(rdmap::Opcode opcode);

}  // namespace diwarp::rnic
