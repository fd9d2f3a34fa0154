// SPDX-License-Identifier: Apache-2.0
#include "bridge/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>
#include <system_error>

#include "diwarp/error.h"

namespace diwarp::bridge {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(make_error_code(Errc::unsupported_operation), message);
}

std::string loader_error() {
  const char* const error = ::dlerror();
  return error != nullptr ? error : "no reason is given";
}

std::string path_of(void* handle, const std::string& otherwise) {
  link_map* map = nullptr;
  const bool found = ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  return found && *map->l_name != '\0' ? map->l_name : otherwise;
}

}  // namespace

SharedLibrary::SharedLibrary(const std::string& file)
    : handle_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) refuse("The library " + file + " cannot be loaded: " + loader_error());
  path_ = path_of(handle_, file);
}

std::string SharedLibrary::file_with_version() const {
  std::error_code error;
  const std::string resolved = std::filesystem::canonical(path_, error);
  return error ? path_ : resolved;
}

bool SharedLibrary::has(const char* symbol) const { return ::dlsym(handle_, symbol) != nullptr; }

void* SharedLibrary::find(const char* name, const char* version) const {
  void* const found = ::dlvsym(handle_, name, version);
  if (found == nullptr)
    refuse(path_ + " has no function " + name + " of version " + version +
           ": hardware devices need rdma-core 36 or newer");
  return found;
}

}  // namespace diwarp::bridge
