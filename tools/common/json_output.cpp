// SPDX-License-Identifier: Apache-2.0
#include "common/json_output.h"

#include <diwarp/version.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace diwarp::tools {

void add_json_option(CLI::App& app, std::string& file) {
  app.add_option("--json", file,
                 "Write the results to FILE as JSON (- or no FILE: to standard output, in place of "
                 "text)")
      ->expected(0, 1)
      ->default_str("-")
      ->type_name("FILE");
}

Json json_output(const std::string& tool) {
  return {{"tool", tool}, {"version", to_string(version())}};
}

Json json_output(const std::string& tool, const Json& row) {
  Json json = json_output(tool);
  json["rows"] = Json::array({row});
  return json;
}

void JsonFile::write(const Json& json) {
  if (!wanted()) return;
  file_.write(json.dump(2) + "\n");
  file_.finish();
}

}  // namespace diwarp::tools
