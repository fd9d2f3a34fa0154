// SPDX-License-Identifier: Apache-2.0
// A program that has spdlog as headers alone, where diwarp was built with it as it is installed.
// That is with an fmt outside of spdlog in Debian.
#if !__has_include(<spdlog/fmt/bundled/core.h>)
#define SPDLOG_FMT_EXTERNAL
#define FMT_HEADER_ONLY
#endif
#include <diwarp/verbs.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>

#ifdef SPDLOG_COMPILED_LIB
#error "diwarp decides for its users how they have spdlog"
#endif

int main() {
  std::ostringstream text;
  spdlog::logger logger("program", std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
  diwarp::Device device = diwarp::Device::open("127.0.0.1");
  logger.warn("{} is open", "a device");
  return text.str().find("a device is open") == std::string::npos;
}
