// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/control.h"
#include "common/json_output.h"

namespace diwarp::tools {

/// One column of the printed table.
struct Column {
  Column(std::string pointer, std::string title, int width, int digits = 0,
         std::string otherwise = {})
      : pointer(std::move(pointer)),
        title(std::move(title)),
        width(width),
        digits(digits),
        otherwise(std::move(otherwise)) {}
  /// Of more than one member of a row.
  Column(std::string (*text)(const Json&), std::string title, int width)
      : text(text), title(std::move(title)), width(width) {}

  std::string (*text)(const Json&) = nullptr;
  std::string pointer;  ///< JSON pointer into a row, as in "/half_rtt_us/p50"
  std::string title;
  int width;
  int digits = 0;              ///< after the point
  std::string otherwise = {};  ///< the pointer for rows that do not have the first one
};

/// What rows that stand below each other in the table have in common.
using Caption = std::string (*)(const Json& row);

/// The results of a run: each row is printed as it comes, and all are written to the files that the
/// user named when the run ends, whether or not it ended well.
class Report {
 public:
  /// "" for no file, "-" for standard output in place of the table. Throws Failure if a file cannot
  /// be written, before anything is measured.
  Report(std::string tool, Caption caption, std::vector<Column> columns,
         const std::string& json_file, const std::string& csv_file);
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  /// Writes the files of a run that did not end well, whose own error is the one to tell.
  ~Report();

  /// Writes the files. Throws Failure where one cannot be written.
  void finish();
  void add(const Json& row);

 private:
  void print_titles(const Json& row);
  void print(const Json& row) const;
  static std::string text_of(const Json& row, const Column& column);
  std::string csv_text() const;

  std::string tool_;
  Caption caption_;
  std::vector<Column> columns_;
  std::string above_;  // the caption of the rows that are being printed
  bool table_ = true;
  JsonFile json_;
  OutputFile csv_;
  Json rows_ = Json::array();
  bool finished_ = false;
};

}  // namespace diwarp::tools
