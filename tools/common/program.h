// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace diwarp::tools {

/// The frame of every tool's main(): an exception becomes one sentence on standard error. Returns
/// the exit status: 0 if all went well, 1 if not, 128 + the signal's number if the user
/// interrupted, or if nobody takes the output.
int run_program(const std::string& name, const std::function<void()>& body);

/// Adds --version, and parses the command line. False if there is nothing more to do, as that or
/// --help has been printed.
/// Throws Failure on options that CLI does not take.
bool parse_command_line(CLI::App& app, int argc, char** argv);

/// The same, without the footer about exit statuses that all tools have but diwarp-run.
bool parse_without_exit_statuses(CLI::App& app, int argc, char** argv);

}  // namespace diwarp::tools
