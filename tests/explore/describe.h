// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/bytes.h"

namespace diwarp::explore {

/// A datagram in a few words, for readers of a trace. Reads what it needs by itself
/// (docs/wire-format.md), so that a parser that is wrong does not make the trace wrong as well.
std::string describe(ConstBytes datagram);

}  // namespace diwarp::explore
