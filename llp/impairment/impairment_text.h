// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "llp/impairment/impairment.h"

namespace diwarp::llp {

/// Reads an impairment from "name=number,...", as in "drop=0.01,seed=7". The names are those of
/// Impairment's fields, `delay` and `jitter` in microseconds, and `every` for drop_every().
/// Probabilities lie from 0 to 1. Nothing, and the reason in `why_not`, if the text is wrong.
std::optional<Impairment> parse_impairment(std::string_view text, std::string& why_not);

}  // namespace diwarp::llp
