// SPDX-License-Identifier: Apache-2.0
#include "system_info.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace diwarp::tools {
namespace {

SystemLimit limit(const std::string& name) {
  SystemLimit result{.name = name, .value = {}};
  std::string path = "/proc/sys/" + name;
  std::replace(path.begin(), path.end(), '.', '/');
  uint64_t value = 0;
  if (std::ifstream(path) >> value) result.value = value;
  return result;
}

std::optional<uint64_t> locked_memory() {
  rlimit limits{};
  const bool bounded =
      ::getrlimit(RLIMIT_MEMLOCK, &limits) == 0 && limits.rlim_cur != RLIM_INFINITY;
  return bounded ? std::optional<uint64_t>(limits.rlim_cur) : std::nullopt;
}

unsigned usable_processors(unsigned all) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return all;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

}  // namespace

SystemInfo system_info() {
  SystemInfo info;
  utsname names{};
  if (::uname(&names) == 0) info.kernel = std::string(names.sysname) + " " + names.release;
  info.processors = static_cast<unsigned>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  info.usable_processors = usable_processors(info.processors);
  info.receive_buffer_limit = limit("net.core.rmem_max");
  info.send_buffer_limit = limit("net.core.wmem_max");
  info.locked_memory = locked_memory();
  return info;
}

}  // namespace diwarp::tools
