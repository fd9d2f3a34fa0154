// SPDX-License-Identifier: Apache-2.0
#include "common/text.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace diwarp::tools {

std::string wrapped(const std::string& head, const std::string& text, size_t columns) {
  std::string result = head;
  size_t at = head.size();
  std::istringstream words(text);
  const char* separator = "";
  for (std::string word; words >> word; separator = " ") {
    if (*separator != '\0' && at + 1 + word.size() > columns) {
      result += "\n" + std::string(head.size(), ' ');
      at = head.size();
      separator = "";
    }
    result += separator + word;
    at += (*separator != '\0' ? 1 : 0) + word.size();
  }
  return result;
}

void print_wrapped(const std::string& head, const std::string& text) {
  std::printf("%s\n", wrapped(head, text).c_str());
}

void print_entry(const std::string& name, const std::string& text, size_t column) {
  std::string head = "  " + name;
  head.resize(std::max(head.size() + 1, column), ' ');
  print_wrapped(head, text);
}

}  // namespace diwarp::tools
