// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "diwarp/attributes.h"
#include "rdmap/terminate.h"
#include "support/catch.h"

namespace diwarp {

/// How a test that fails shows a code.
inline std::ostream& operator<<(std::ostream& out, const TerminateCode& code) {
  return out << to_string(code);
}

namespace test {

using Fault = std::optional<TerminateCode>;
inline const Fault kNoFault;

}  // namespace test
}  // namespace diwarp
