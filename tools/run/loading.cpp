// SPDX-License-Identifier: Apache-2.0
#include "run/loading.h"

#include <algorithm>
#include <chrono>
#include <sstream>

#include "base/clock.h"
#include "common/failure.h"
#include "compare/captured.h"
#include "run/environment.h"

namespace diwarp::tools {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);

/// The file in a line like "libibverbs.so.1 => /usr/lib/libibverbs.so.1 (0x...)".
std::string file_in(const std::string& line) {
  const size_t arrow = line.find("=> ");
  if (arrow == std::string::npos) return "";
  const std::string rest = line.substr(arrow + 3);
  return rest.substr(0, rest.find(" (0x"));
}

bool is_about(const std::string& line, const std::string& library) {
  return line.find_first_not_of(" \t") == line.find(library + " =>");
}

/// A symbol without a version and of another name is none of theirs: plug-ins take such from their
/// program, as Python's modules do.
bool is_of_theirs(const std::string& symbol) {
  for (const char* prefix : {"ibv_", "_ibv_", "rdma_", "verbs_"})
    if (symbol.starts_with(prefix)) return true;
  return symbol.find(", version ") != std::string::npos;
}

bool tells_of_missing(const std::string& line) {
  const std::string undefined = "undefined symbol: ";
  if (const size_t found = line.find(undefined); found != std::string::npos)
    return is_of_theirs(line.substr(found + undefined.size()));
  return line.find("not found") != std::string::npos ||
         line.find("symbol lookup error") != std::string::npos;
}

std::string trimmed(const std::string& line) {
  const size_t begin = line.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : line.substr(begin);
}

void take_line(const std::string& line, Loading& loading) {
  if (line.find("not a dynamic executable") != std::string::npos ||
      line.find("statically linked") != std::string::npos)
    loading.dynamic = false;
  if (is_about(line, "libibverbs.so.1")) loading.verbs = file_in(line);
  if (is_about(line, "librdmacm.so.1")) loading.cm = file_in(line);
  if (!tells_of_missing(line)) return;
  const std::string told = trimmed(line);
  if (std::find(loading.missing.begin(), loading.missing.end(), told) == loading.missing.end())
    loading.missing.push_back(told);
}

}  // namespace

Loading parse_loading(const std::string& output) {
  Loading loading;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) take_line(line, loading);
  return loading;
}

Loading ask_loader(const std::string& file, const std::string& folder) {
  // A name without a slash would be looked up as a library's.
  const std::string named = file.find('/') == std::string::npos ? "./" + file : file;
  Captured ldd(-1,
               {"env", "LC_ALL=C", "LD_LIBRARY_PATH=" + library_path(folder), "ldd", "-r", named});
  if (!ldd.finish(SteadyClock::instance().now() + kPatience))
    throw Failure("The loader did not answer what " + file + " needs.");
  if (ldd.status() == 127) throw Failure("There is no ldd, which tells what a program needs.");
  return parse_loading(ldd.output());
}

}  // namespace diwarp::tools
