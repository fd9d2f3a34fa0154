// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <cstdio>

namespace diwarp::tools {
namespace {

std::string cell(const Json& value, int digits) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value.get<double>());
  return text;
}

/// "/half_rtt_us/p50" as a CSV column's name: "half_rtt_us_p50".
std::string column_name(std::string pointer) {
  pointer.erase(0, 1);
  for (char& c : pointer) {
    if (c == '/') c = '_';
  }
  return pointer;
}

template <class Cells>
void write_line(std::ostream& file, const Cells& cells) {
  const char* separator = "";
  for (const std::string& text : cells) {
    file << separator << text;
    separator = ",";
  }
  file << "\n";
}

}  // namespace

Report::Report(std::vector<Column> columns, const std::string& json_file,
               const std::string& csv_file)
    : columns_(std::move(columns)),
      table_(json_file != "-" && csv_file != "-"),
      json_(json_file),
      csv_(csv_file) {}

Report::~Report() {
  if (json_.wanted()) write_json();
  if (csv_.wanted()) write_csv();
}

void Report::add(const Json& row) {
  rows_.push_back(row);
  if (!table_) return;
  if (rows_.size() == 1) print_titles();
  print(row);
}

void Report::print_titles() const {
  for (const Column& column : columns_) std::printf("%*s", column.width, column.title.c_str());
  std::printf("\n");
}

void Report::print(const Json& row) const {
  for (const Column& column : columns_) {
    std::printf("%*s", column.width, text_of(row, column).c_str());
  }
  std::printf("\n");
  std::fflush(stdout);
}

std::string Report::text_of(const Json& row, const Column& column) {
  for (const std::string& text : {column.pointer, column.otherwise}) {
    const Json::json_pointer pointer(text);
    if (!text.empty() && row.contains(pointer)) return cell(row[pointer], column.digits);
  }
  return "-";
}

void Report::write_json() { json_.stream() << rows_.dump(2) << std::endl; }

void Report::write_csv() {
  if (rows_.empty()) return;
  std::vector<std::string> names;
  const Json first = rows_[0].flatten();
  for (const auto& [pointer, value] : first.items()) names.push_back(column_name(pointer));
  write_line(csv_.stream(), names);
  for (const Json& row : rows_) {
    std::vector<std::string> cells;
    const Json flat = row.flatten();
    for (const auto& [pointer, value] : flat.items()) cells.push_back(cell(value, 6));
    write_line(csv_.stream(), cells);
  }
}

}  // namespace diwarp::tools
