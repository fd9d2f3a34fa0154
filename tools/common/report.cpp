// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <sstream>
#include <utility>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

std::string cell(const Json& value, int digits) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return value.dump();
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value.get<double>());
  return text;
}

/// With as many digits as the column has room for.
std::string fitting_cell(const Json& value, const Column& column) {
  int digits = column.digits;
  while (digits > 0 && cell(value, digits).size() >= static_cast<size_t>(column.width)) --digits;
  return cell(value, digits);
}

/// Apart from the one before it, however long it is.
void print_cell(const std::string& text, int width) {
  std::printf(" %*s", width - 1, text.c_str());
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
void write_line(std::ostream& text, const Cells& cells) {
  const char* separator = "";
  for (const std::string& cell : cells) {
    text << separator << cell;
    separator = ",";
  }
  text << "\n";
}

/// A blank and why it failed; empty where it did not.
template <class Write>
std::string failure_of(Write&& write) {
  try {
    write();
  } catch (const Failure& failure) {
    return std::string(" ") + failure.what();
  }
  return {};
}

}  // namespace

Report::Report(std::string tool, Caption caption, std::vector<Column> columns,
               const std::string& json_file, const std::string& csv_file)
    : tool_(std::move(tool)),
      caption_(caption),
      columns_(std::move(columns)),
      table_(json_file != "-" && csv_file != "-"),
      json_(json_file),
      csv_(csv_file) {}

Report::~Report() {
  try {
    finish();
  } catch (const std::exception&) {
  }
}

void Report::finish() {
  if (std::exchange(finished_, true)) return;
  Json json = json_output(tool_);
  json["rows"] = rows_;
  // What one file refuses, the other may take.
  std::string refused = failure_of([&] { json_.write(json); });
  refused += failure_of([&] {
    csv_.write(csv_text());
    csv_.finish();
  });
  if (!refused.empty()) throw Failure(refused.substr(1));
}

void Report::add(const Json& row) {
  rows_.push_back(row);
  if (!table_) return;
  print_titles(row);
  print(row);
}

void Report::print_titles(const Json& row) {
  const std::string caption = caption_(row);
  if (caption == above_) return;
  above_ = caption;
  std::printf("%s\n", caption.c_str());
  for (const Column& column : columns_) print_cell(column.title, column.width);
  std::printf("\n");
}

void Report::print(const Json& row) const {
  for (const Column& column : columns_) print_cell(text_of(row, column), column.width);
  std::printf("\n");
  std::fflush(stdout);
}

std::string Report::text_of(const Json& row, const Column& column) {
  if (column.text != nullptr) return column.text(row);
  for (const std::string& text : {column.pointer, column.otherwise}) {
    const Json::json_pointer pointer(text);
    if (!text.empty() && row.contains(pointer)) return fitting_cell(row[pointer], column);
  }
  return "-";
}

/// Rows may have members that others have not.
std::string Report::csv_text() const {
  if (rows_.empty()) return {};
  std::vector<std::string> pointers, names;
  for (const Json& row : rows_) {
    const Json flat = row.flatten();
    for (const auto& [pointer, value] : flat.items())
      if (std::ranges::find(pointers, pointer) == pointers.end()) pointers.push_back(pointer);
  }
  std::ranges::transform(pointers, std::back_inserter(names), column_name);
  std::ostringstream text;
  write_line(text, names);
  for (const Json& row : rows_) {
    const Json flat = row.flatten();
    std::vector<std::string> cells;
    for (const std::string& pointer : pointers)
      cells.push_back(flat.contains(pointer) ? cell(flat[pointer], 6) : "");
    write_line(text, cells);
  }
  return text.str();
}

}  // namespace diwarp::tools
