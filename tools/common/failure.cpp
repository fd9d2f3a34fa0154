// SPDX-License-Identifier: Apache-2.0
#include "common/failure.h"

#include <diwarp/error.h>

#include <string_view>

namespace diwarp::tools {

std::string sentence_of(const std::exception& error) {
  std::string text = error.what();
  const auto* const ours = dynamic_cast<const Error*>(&error);
  if (ours == nullptr || ours->code().category() != error_category()) return text;
  const std::string general = ": " + ours->code().message();
  if (!text.ends_with(general) || text.size() == general.size()) return text;
  text.resize(text.size() - general.size());
  if (std::string_view(".?!").find(text.back()) == std::string_view::npos) text += '.';
  return text;
}

}  // namespace diwarp::tools
