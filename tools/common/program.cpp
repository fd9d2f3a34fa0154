// SPDX-License-Identifier: Apache-2.0
#include "common/program.h"

#include <diwarp/version.h>

#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
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

/// Whether standard output is a pipe or a socket whose other end is closed. Asks the system, as the
/// write that failed may lie far back.
bool nobody_reads() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

/// Why standard output cannot be written: `error`, or, where that is 0, as an earlier write failed,
/// what a write of nothing tells.
std::string output_failure(int error) {
  if (error == 0 && ::write(STDOUT_FILENO, "", 0) < 0) error = errno;
  if (error != 0) return std::strerror(error);
  return "part of it was not taken; the disk may be full";
}

/// The exit status that standard output leaves. One that nobody reads ends a program as SIGPIPE
/// would, without a word.
int finish_output(const std::string& name) {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  const int error = errno;
  if (std::cout.good() && std::ferror(stdout) == 0) return 0;
  if (error == EPIPE || nobody_reads()) return 128 + SIGPIPE;
  complain(name, ("Standard output cannot be written: " + output_failure(error) + ".").c_str());
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
  complain(name, sentence_of(failure).c_str());
  return 1;
}

}  // namespace

int run_program(const std::string& name, const std::function<void()>& body) {
  note_interrupts();
  std::signal(SIGPIPE, SIG_IGN);  // a peer that has gone is an error of the call, on siw as well
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that reaches the limit of its size
  try {
    body();
    return finish_output(name);
  } catch (const std::exception& failure) {
    return explain_failure(name, failure);
  }
}

bool parse_command_line(CLI::App& app, int argc, char** argv) {
  app.footer(with_exit_status(app.get_footer()));
  return parse_without_exit_statuses(app, argc, argv);
}

bool parse_without_exit_statuses(CLI::App& app, int argc, char** argv) {
  app.set_version_flag("--version", app.get_name() + " " + to_string(version()),
                       "Print the version and exit");
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
