// SPDX-License-Identifier: Apache-2.0
// diwarp-run: runs a program that was built for libibverbs and librdmacm over diwarp. It sets the
// environment and becomes the program: signals, exit status and children are the program's own.
#include <diwarp/version.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "common/failure.h"
#include "common/program.h"
#include "run/environment.h"
#include "run/loading.h"
#include "run/program_file.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-run";
constexpr int kRefused = 2;
constexpr int kNotFound = 127;

/// There is no such program.
class NotFound : public Failure {
 public:
  using Failure::Failure;
};

struct Options {
  RunOptions run;
  bool print_environment = false;
  bool check = false;
  std::vector<std::string> command;
};

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(input), {}};
}

/// The folder with both libraries: beside an installed program's, or in the build.
std::filesystem::path find_folder() {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const char* place : {DIWARP_RUN_FOLDER, "../compat/lib"}) {
    const std::filesystem::path folder = (own / place).lexically_normal();
    if (std::filesystem::exists(folder / "libibverbs.so.1")) return folder;
  }
  throw Failure(
      "The drop-ins for libibverbs and librdmacm are not installed: they are expected in " +
      (own / DIWARP_RUN_FOLDER).lexically_normal().string() + ".");
}

/// Each library has a symbol version of this very version of diwarp's.
void check_folder(const std::filesystem::path& folder) {
  const std::string version = "DIWARP_" + to_string(kHeaderVersion);
  for (const char* name : {"libibverbs.so.1", "librdmacm.so.1"}) {
    const std::filesystem::path file = folder / name;
    if (contents_of(file).find(version) == std::string::npos)
      throw Failure(file.string() + " is missing, or of another version than " + kName + " (" +
                    to_string(kHeaderVersion) + "): install diwarp anew.");
    const Loading loading = ask_loader(file, folder);
    if (!loading.missing.empty())
      throw Failure(file.string() + " does not fit the libraries that it finds (" +
                    loading.missing.front() + "): install diwarp anew.");
  }
}

void check_from_folder(const std::string& library, const std::string& found,
                       const std::filesystem::path& folder) {
  const std::filesystem::path ours = folder / library;
  if (found.empty() || found == "not found") return;
  std::error_code error;
  if (!std::filesystem::equivalent(found, ours, error))
    throw Failure("The program would take " + found +
                  " all the same: it has a path of its own to " + library + " (RPATH).");
}

std::string find_program(const std::string& program) {
  if (auto file = find_program_file(program)) return *file;
  throw NotFound(program + ": no such program.");
}

/// The program's file, once it is certain that it would run over diwarp.
std::string checked_program(const std::string& program, const std::filesystem::path& folder) {
  const std::string file = find_program(program);
  if (const std::string why = why_not_preloadable(file); !why.empty())
    throw Failure(file + " cannot be run over diwarp: " + why + ".");
  const Loading loading = ask_loader(file, folder);
  if (!loading.dynamic)
    throw Failure(file + " cannot be run over diwarp: it is linked statically.");
  check_from_folder("libibverbs.so.1", loading.verbs, folder);
  check_from_folder("librdmacm.so.1", loading.cm, folder);
  return file;
}

std::string or_none(const std::string& file) { return file.empty() ? "not asked for" : file; }

/// A library may be checked as well as a program.
void check(const std::string& program, const std::filesystem::path& folder) {
  const bool is_file = program.find('/') != std::string::npos && std::filesystem::exists(program);
  const std::string file = is_file ? program : find_program(program);
  const Loading loading = ask_loader(file, folder);
  if (!loading.dynamic) throw Failure(file + " is linked statically, or no program.");
  std::printf("libibverbs.so.1: %s\nlibrdmacm.so.1: %s\n", or_none(loading.verbs).c_str(),
              or_none(loading.cm).c_str());
  for (const std::string& what : loading.missing) std::printf("missing: %s\n", what.c_str());
  check_from_folder("libibverbs.so.1", loading.verbs, folder);
  check_from_folder("librdmacm.so.1", loading.cm, folder);
  if (!loading.missing.empty()) throw Failure(file + " needs what is not there.");
}

[[noreturn]] void become(const std::string& file, const Options& options,
                         const Variables& variables) {
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& word : options.command)
    arguments.push_back(const_cast<char*>(word.data()));
  arguments.push_back(nullptr);
  ::execv(file.c_str(), arguments.data());
  throw Failure(file + " cannot be run: " + std::strerror(errno) + ".");
}

void run(const Options& options) {
  const std::filesystem::path folder = find_folder();
  const Variables variables = drop_in_environment(options.run, folder);
  check_folder(folder);
  if (options.print_environment) {
    std::fputs(as_lines(variables).c_str(), stdout);
    return;
  }
  if (options.command.empty()) throw Failure("Which program? diwarp-run PROGRAM ARGUMENTS");
  if (options.check) return check(options.command.front(), folder);
  become(checked_program(options.command.front(), folder), options, variables);
}

void add_options(CLI::App& app, Options& options) {
  app.add_option("--device", options.run.devices, "a further device on an address: NAME=ADDR")
      ->type_name("NAME=ADDR")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option(
         "--spin", options.run.spin,
         "how long the RNIC's thread looks for work before it sleeps, as in 50us (default 0)")
      ->type_name("TIME");
  app.add_option("--cpu", options.run.cpu, "processor of the RNIC's thread")
      ->type_name("N")
      ->check(CLI::Range(0, 8191));
  app.add_option(
         "--ud", options.run.ud,
         "reliable: UD queue pairs lose nothing, but are in no groups; the peer's need it, too")
      ->type_name("reliable")
      ->check(CLI::IsMember({"reliable"}));
  app.add_option("--ud-rate", options.run.ud_rate,
                 "most bytes a second that a UD queue pair sends, as in 100M")
      ->type_name("RATE");
  app.add_option("--receive-wait", options.run.receive_wait,
                 "how long a message over RC waits for a receive, as in 10s (default 3600s); 0: it "
                 "ends the connection, as with iWARP adapters")
      ->type_name("TIME");
  app.add_flag("--crc", options.run.crc,
               "MPA's CRCs also on connections within this host, which are memory to memory");
  app.add_option("--log", options.run.log, "what the library tells on standard error")
      ->type_name("trace|debug|info|warn|error|off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.add_flag("--counters", options.run.counters, "print the devices' counters at the end");
  app.add_flag("--print-env", options.print_environment,
               "print the environment, NAME=VALUE a line, and run nothing");
  app.add_flag("--check", options.check,
               "say which libraries PROGRAM would load, and what of theirs it lacks");
  app.prefix_command();
  app.footer(
      "Examples:\n"
      "  diwarp-run rping -s -a 192.0.2.1 &\n"
      "  diwarp-run rping -c -a 192.0.2.1 -C 10 -v\n"
      "  diwarp-run --counters ib_send_lat -R 192.0.2.1\n"
      "  diwarp-run --ud reliable udaddy -s 192.0.2.1\n"
      "  diwarp-run --print-env >> \"$GITHUB_ENV\"\n"
      "  env $(diwarp-run --print-env) ibv_devinfo\n"
      "\n"
      "Exit status: that of the program; 127 where there is none, and 2 where it cannot be run\n"
      "over diwarp.\n");
}

/// What stands after the options. CLI leaves it as it came.
std::vector<std::string> command_of(const CLI::App& app) {
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (!words.empty() && words.front().starts_with("-"))
    throw Failure(words.front() + " is no option of diwarp-run, which has --help.");
  return words;
}

int main(int argc, char** argv) try {
  CLI::App app{"Runs a program that was built for libibverbs and librdmacm over diwarp.", kName};
  Options options;
  add_options(app, options);
  if (!parse_without_exit_statuses(app, argc, argv)) return 0;
  options.command = command_of(app);
  run(options);
  return 0;
} catch (const NotFound& failure) {
  std::fprintf(stderr, "%s: %s\n", kName, failure.what());
  return kNotFound;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s: %s\n", kName, failure.what());
  return kRefused;
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) { return diwarp::tools::main(argc, argv); }
