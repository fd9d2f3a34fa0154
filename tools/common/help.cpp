// SPDX-License-Identifier: Apache-2.0
#include "common/help.h"

#include <algorithm>
#include <sstream>

#include "common/text.h"

namespace diwarp::tools {
namespace {

constexpr size_t kOptionColumn = 30;

/// What a line of a footer begins with and all its further lines leave free: blanks, and the first
/// word where two blanks follow it, as in a list.
size_t head_of(const std::string& line) {
  const size_t word = std::min(line.find_first_not_of(' '), line.size());
  const size_t end = std::min(line.find(' ', word), line.size());
  if (word == 0 || line.compare(end, 2, "  ") != 0) return word;
  return std::min(line.find_first_not_of(' ', end), line.size());
}

}  // namespace

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped("", app->get_description()) + "\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string head = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  const std::string text = make_option_desc(option);
  const std::string indent(kOptionColumn, ' ');
  if (head.size() >= kOptionColumn) return head + "\n" + wrapped(indent, text) + "\n";
  head.resize(kOptionColumn, ' ');
  return wrapped(head, text) + "\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::istringstream lines(app->get_footer());
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    const size_t head = head_of(line);
    result += wrapped(line.substr(0, head), line.substr(head)) + "\n";
  }
  return result;
}

}  // namespace diwarp::tools
