// SPDX-License-Identifier: Apache-2.0
// Files and the progress of file_transfer.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace example {

[[noreturn]] inline void fail(const std::string& sentence) { throw std::runtime_error(sentence); }

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
inline File open(const std::filesystem::path& path, const char* mode) {
  File file(std::fopen(path.c_str(), mode), std::fclose);
  if (!file) throw std::system_error(errno, std::generic_category(), path.filename().string());
  return file;
}

/// Prints each percentage once.
inline void show_progress(uint64_t done, uint64_t size) {
  static uint64_t shown = 101;
  const uint64_t percent = size == 0 ? 100 : done * 100 / size;
  if (std::exchange(shown, percent) == percent) return;
  std::printf("\r%llu %%%s", static_cast<unsigned long long>(percent), done == size ? "\n" : "");
  std::fflush(stdout);
}

/// A new file in a folder, under a name that the peer chose: letters, digits and some signs, so
/// that it leads nowhere else. It is called NAME.part until it is kept, and else goes again.
struct Target {
  Target(const std::filesystem::path& folder, const std::string& name)
      : path(folder / name), part(folder / (name + ".part")) {
    const std::string first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (name.empty() || name.size() > 250 || first.find(name[0]) == std::string::npos ||
        name.find_first_not_of(first + ".-+ ") != std::string::npos)
      fail("no file may be called \"" + name + "\" here");
    if (std::filesystem::exists(std::filesystem::symlink_status(path)))
      fail(name + ": File exists");
    file = open(part, "wbx");  // x: fails if there is anything of this name
  }
  ~Target() {
    if (file) std::remove(part.c_str());
  }
  void write(const std::byte* bytes, size_t length) {
    if (std::fwrite(bytes, 1, length, file.get()) != length)
      throw std::system_error(errno, std::generic_category(), path.filename().string());
  }
  void keep() {
    if (std::fflush(file.get()) != 0)
      throw std::system_error(errno, std::generic_category(), path.filename().string());
    std::filesystem::create_hard_link(part, path);  // fails if the name is taken by now
  }
  std::filesystem::path path, part;
  File file{nullptr, std::fclose};
};

}  // namespace example
