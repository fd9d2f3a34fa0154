// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/control.h"
#include "common/output_file.h"

namespace diwarp::tools {

/// One column of the printed table.
struct Column {
  std::string pointer;  ///< JSON pointer into a row, as in "/half_rtt_us/p50"
  std::string title;
  int width;
  int digits = 0;              ///< after the point
  std::string otherwise = {};  ///< the pointer for rows that do not have the first one
};

/// The results of a run: each row is printed as it comes, and all are written to the files that the
/// user named when the run ends, whether or not it ended well.
class Report {
 public:
  /// "" for no file, "-" for standard output in place of the table. Throws Failure if a file cannot
  /// be written, before anything is measured.
  Report(std::vector<Column> columns, const std::string& json_file, const std::string& csv_file);
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  ~Report();

  void add(const Json& row);

 private:
  void print_titles() const;
  void print(const Json& row) const;
  static std::string text_of(const Json& row, const Column& column);
  void write_json();
  void write_csv();

  std::vector<Column> columns_;
  bool table_ = true;
  OutputFile json_;
  OutputFile csv_;
  Json rows_ = Json::array();
};

}  // namespace diwarp::tools
