// SPDX-License-Identifier: Apache-2.0
#include "common/program.h"

#include <diwarp/version.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "common/failure.h"
#include "common/help.h"
#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

void complain(const std::string& name, const char* message) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), message);
}

/// The end of every --help (docs/tools.md has the same).
std::string with_exit_status(const std::string& footer) {
  return (footer.empty() ? "" : footer + "\n") +
         "Exit status:\n"
         "  0    all went well\n"
         "  1    it did not; one sentence on standard error says why\n"
         "  130  interrupted (SIGINT); 143: SIGTERM\n"
         "  141  nobody reads standard output\n";
}

/// The exit status that standard output leaves. One that nobody reads ends a program as SIGPIPE
/// would, without a word.
int finish_output(const std::string& name) {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  const bool full = errno == ENOSPC;
  if (std::cout.good() && std::ferror(stdout) == 0) return 0;
  if (!full) return 128 + SIGPIPE;
  complain(name, "Standard output cannot be written: there is no space left.");
  return 1;
}

/// The exit status for what ended the program. Where the user interrupted both ends, the other
/// end's orderly close may be what this one saw first.
int explain_failure(const std::string& name, const std::exception& failure) {
  try {
    check_interrupted();
  } catch (const Interrupted& interrupted) {
    complain(name, interrupted.what());
    return 128 + interrupted.signal();
  }
  complain(name, failure.what());
  return 1;
}

}  // namespace

int run_program(const std::string& name, const std::function<void()>& body) {
  note_interrupts();
  std::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is an error of the call, on siw as well
  try {
    body();
    return finish_output(name);
  } catch (const std::exception& failure) {
    return explain_failure(name, failure);
  }
}

bool parse_command_line(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", app.get_name() + " " + to_string(version()),
                       "Print the version and exit");
  app.footer(with_exit_status(app.get_footer()));
  app.formatter(std::make_shared<HelpFormatter>());
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& help) {
    app.exit(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw Failure(std::string(error.what()) + " (--help lists the options)");
  }
}

}  // namespace diwarp::tools
