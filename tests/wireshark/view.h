// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/bytes.h"

namespace diwarp::test {

/// Two digits a byte.
std::string hex_of(ConstBytes bytes);

/// What the library's decoder makes of a datagram: "verdict=accepted name=value ...", with the
/// names that the dissector's fields have and numbers in decimal, or "verdict=" and the counter of
/// the drop. Only what the datagram itself tells: no queue pair is asked.
std::string view_of(ConstBytes datagram);

}  // namespace diwarp::test
