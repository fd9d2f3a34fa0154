// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace diwarp::tools {

/// The file that PROGRAM means: itself where it has a slash, else the first of its name in PATH
/// that may be executed. Nothing where there is none.
std::optional<std::string> find_program_file(const std::string& program);

/// Why a file cannot be run with other libraries than those it would find by itself, in words;
/// empty: it can. Looks at its mode and its first bytes.
std::string why_not_preloadable(const std::string& file);

}  // namespace diwarp::tools
