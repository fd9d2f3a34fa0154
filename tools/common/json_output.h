// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "common/control.h"
#include "common/output_file.h"

namespace CLI {
class App;
}

namespace diwarp::tools {

/// --json [FILE], which every tool has: to FILE, or with "-" or no FILE to standard output, where
/// it takes the place of the text.
void add_json_option(CLI::App& app, std::string& file);

/// The beginning of every tool's output in JSON: an object that names the tool and its version.
/// What the tool measured goes into its "rows" (tools/schema.json).
Json json_output(const std::string& tool);
/// The same with one row.
Json json_output(const std::string& tool, const Json& row);

/// The file that --json names.
class JsonFile {
 public:
  /// Throws Failure, before anything is measured, where it cannot be written.
  explicit JsonFile(const std::string& name) : file_(name), replaces_text_(name == "-") {}

  bool wanted() const { return file_.wanted(); }
  /// Whether the JSON goes where text would.
  bool replaces_text() const { return replaces_text_; }
  /// All of the file, if it is wanted. Throws Failure where it cannot be written.
  void write(const Json& json);
  /// A part of the file, at once; finish() ends it.
  void write_part(const std::string& text) { file_.write(text); }
  void finish() { file_.finish(); }

 private:
  OutputFile file_;
  bool replaces_text_;
};

}  // namespace diwarp::tools
