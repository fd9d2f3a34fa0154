// SPDX-License-Identifier: Apache-2.0
#include "soak/ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace soak {

namespace {

constexpr uint64_t kMostFindings = 20;  // that one process tells

/// Field `index` of /proc/self/statm, in bytes; 0 where no descriptor is left to read it.
uint64_t statm(int index) {
  char text[256] = "";
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  char* at = text;
  for (int field = 0; got > 0 && field < index; ++field) std::strtoull(at, &at, 10);
  return std::strtoull(at, nullptr, 10) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Open descriptors, without the one that this takes; 0 where none is left for it.
uint64_t open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return count - 1;
}

}  // namespace

void Ledger::finding(const std::string& what, const std::string& message) {
  if (++findings_ > kMostFindings) return;
  print(nlohmann::json{{"finding", what}, {"message", message}}.dump());
  if (abort_) std::abort();
}

void Ledger::wrong_byte(const std::string& where, std::span<const std::byte> memory, size_t at) {
  finding("wrong-byte", "byte " + std::to_string(at) + " of " + std::to_string(memory.size()) +
                            " is wrong: " + where);
}

void Ledger::round(nlohmann::json line) const {
  line["counts"] = counts_;
  line["verified"] = verified_;
  line["resident"] = statm(1);
  line["descriptors"] = open_descriptors();
  print(line.dump());
}

void Ledger::print(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

}  // namespace soak
