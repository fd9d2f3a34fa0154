// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

/// Lines on stderr, from any thread. The environment variable DIWARP_LOG chooses the lowest level
/// shown: debug, info, warn (the default), error or off.
namespace diwarp::log {

void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

/// Whether debug() shows anything: ask before composing a costly message.
bool debug_enabled();

}  // namespace diwarp::log
