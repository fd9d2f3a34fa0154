// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/control.h"
#include "compare/figures.h"
#include "compare/rounds.h"

namespace diwarp::tools {

/// The names and targets of rows.
void print_list(std::span<const Row> rows);

/// "machine" or "settings", a line for each entry.
void print_entries(const char* title, const Json& entries);

void print_table(std::span<const Figure> figures);

Json to_json(const Settings& settings);
Json to_json(const Figure& figure);

}  // namespace diwarp::tools
