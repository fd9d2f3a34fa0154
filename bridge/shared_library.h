// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace diwarp::bridge {

/// A shared library, loaded for this process. It is never unloaded: its threads, and objects that
/// outlive their owners, may still run its code.
class SharedLibrary {
 public:
  /// `file` is a path, or a name that the loader looks for. Its symbols stay its own (RTLD_LOCAL).
  /// Throws Error(unsupported_operation) with the loader's reason.
  explicit SharedLibrary(const std::string& file);

  /// Where the library was found.
  const std::string& path() const { return path_; }
  /// The file that the path leads to, whose name has the version.
  std::string file_with_version() const;
  bool has(const char* symbol) const;

  /// A function by its name and version. Throws Error(unsupported_operation) where there is none.
  template <class Function>
  Function function(const char* name, const char* version) const {
    return reinterpret_cast<Function>(find(name, version));
  }

 private:
  void* find(const char* name, const char* version) const;

  void* handle_;
  std::string path_;
};

}  // namespace diwarp::bridge
