// SPDX-License-Identifier: Apache-2.0
#include "run/program_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace diwarp::tools {
namespace {

bool is_executable_file(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::string first_bytes(const std::string& file) {
  std::string bytes(4, '\0');
  std::ifstream input(file, std::ios::binary);
  input.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(input.gcount()));
  return bytes;
}

}  // namespace

std::optional<std::string> find_program_file(const std::string& program) {
  if (program.find('/') != std::string::npos)
    return is_executable_file(program) ? std::optional(program) : std::nullopt;
  const char* const value = std::getenv("PATH");
  std::string path = value != nullptr ? value : "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string folder = end == begin ? "." : path.substr(begin, end - begin);
    if (is_executable_file(folder + "/" + program)) return folder + "/" + program;
    begin = end + 1;
  }
  return std::nullopt;
}

std::string why_not_preloadable(const std::string& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return "it cannot be looked at";
  if ((about.st_mode & (S_ISUID | S_ISGID)) != 0)
    return "it is setuid or setgid, and the system lets such a program choose its libraries itself";
  const std::string bytes = first_bytes(file);
  if (bytes.starts_with("#!")) return "it is a script: name its interpreter, and then the script";
  return bytes == "\x7f"
                  "ELF"
             ? ""
             : "it is no program of this system";
}

}  // namespace diwarp::tools
