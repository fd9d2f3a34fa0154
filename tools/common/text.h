// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace diwarp::tools {

/// Columns of a terminal that everybody has.
inline constexpr size_t kColumnsOfTerminal = 80;

/// `head` and the words of `text`, in lines of at most so many columns; further lines begin below
/// the text. A word that is longer than a line stays whole.
std::string wrapped(const std::string& head, const std::string& text,
                    size_t columns = kColumnsOfTerminal);

/// On standard output, with the end of the line.
void print_wrapped(const std::string& head, const std::string& text);
/// The same of a line in a list: the text begins in the same column in all that have shorter names.
void print_entry(const std::string& name, const std::string& text, size_t column = 31);

}  // namespace diwarp::tools
