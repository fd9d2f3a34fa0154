// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <cstdlib>
#include <memory>
#include <string>

namespace diwarp::log {
namespace {

spdlog::level::level_enum level_from_environment() {
  const char* wanted = std::getenv("DIWARP_LOG");
  if (wanted == nullptr) return spdlog::level::warn;
  const auto level = spdlog::level::from_str(wanted);
  // from_str() takes every unknown word for "off".
  const bool unknown = level == spdlog::level::off && std::string(wanted) != "off";
  return unknown ? spdlog::level::warn : level;
}

std::unique_ptr<spdlog::logger> make_logger() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  auto created = std::make_unique<spdlog::logger>("diwarp", std::move(sink));
  created->set_pattern("[%H:%M:%S.%f] [%n] [%l] %v");
  created->set_level(level_from_environment());
  return created;
}

// Never destroyed: threads and destructors of static objects may still log at exit.
spdlog::logger& logger() {
  static spdlog::logger* const instance = make_logger().release();
  return *instance;
}

void write(spdlog::level::level_enum level, std::string_view message) {
  logger().log(level, spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace

void debug(std::string_view message) { write(spdlog::level::debug, message); }
void info(std::string_view message) { write(spdlog::level::info, message); }
void warn(std::string_view message) { write(spdlog::level::warn, message); }
void error(std::string_view message) { write(spdlog::level::err, message); }

bool debug_enabled() { return logger().should_log(spdlog::level::debug); }

}  // namespace diwarp::log
