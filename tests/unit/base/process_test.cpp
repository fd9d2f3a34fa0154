// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/fork_guard.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int exit_status_of(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/// The text that a child process with this DIWARP_LOG writes to stderr when it logs at every level.
std::string logged_with(const char* level) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(writing.get(), STDERR_FILENO);
    level == nullptr ? unsetenv("DIWARP_LOG") : setenv("DIWARP_LOG", level, 1);
    log::debug("one");
    log::info("two");
    log::warn("three {} %s");
    log::error("four");
    _exit(log::shows(LogLevel::debug) ? 1 : 0);
  }
  writing.reset();
  std::string text;
  char buffer[512];
  for (ssize_t got; (got = read(reading.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  const bool debugging = exit_status_of(child) == 1;
  CHECK(debugging == (text.find("one") != std::string::npos));
  return text;
}

std::string words_of(const std::string& text) {
  std::string found;
  for (const char* word : {"one", "two", "three {} %s", "four"}) {
    if (text.find(word) != std::string::npos) found += word[0] == 't' ? word[1] : word[0];
  }
  return found;
}

}  // namespace

TEST_CASE("a unique descriptor closes at its end, moves and releases") {
  const int raw = open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(raw >= 0);
  {
    UniqueFd first(raw);
    UniqueFd second(std::move(first));
    CHECK_FALSE(first);
    CHECK(second.get() == raw);
    UniqueFd third;
    CHECK(third.get() == -1);
    third = std::move(second);
    CHECK(third);
    CHECK(third.release() == raw);
    CHECK(is_open(raw));
    third.reset(raw);
  }
  CHECK_FALSE(is_open(raw));
}

TEST_CASE("assigning a descriptor closes the one held before") {
  UniqueFd first(open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd second(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int old = first.get();
  const int kept = second.get();
  first = std::move(second);
  CHECK_FALSE(is_open(old));
  CHECK(is_open(kept));
}

TEST_CASE("a forked child knows that it is one, and its parent that it is not") {
  const ForkGuard guard;
  const uint64_t generation = fork_generation();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool right =
        guard.in_child() && fork_generation() == generation + 1 && !ForkGuard().in_child();
    _exit(right ? 0 : 1);
  }
  CHECK(exit_status_of(child) == 0);
  CHECK_FALSE(guard.in_child());
  CHECK(fork_generation() == generation);
}

TEST_CASE("the log shows warnings and errors unless told otherwise") {
  CHECK(words_of(logged_with(nullptr)) == "hf");
  CHECK(words_of(logged_with("no such level")) == "hf");
  CHECK(logged_with(nullptr).find("[diwarp]") != std::string::npos);
}

TEST_CASE("a DIWARP_LOG that names no level is told in one line, which names the levels") {
  const std::string text = logged_with("verbose");
  const size_t told = text.find("DIWARP_LOG=verbose names no level");
  REQUIRE(told != std::string::npos);
  const std::string line = text.substr(told, text.find('\n', told) - told);
  for (const char* word : {"trace", "debug", "info", "warn", "error", "off"})
    CHECK(line.find(word) != std::string::npos);
  CHECK(text.find("names no level", told + line.size()) == std::string::npos);
  CHECK(logged_with("").find("names no level") == std::string::npos);
}

TEST_CASE("DIWARP_LOG_FD names the descriptor that lines go to") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  REQUIRE(setenv("DIWARP_LOG_FD", std::to_string(writing.get()).c_str(), 1) == 0);
  const std::string on_stderr = logged_with("warn");
  writing.reset();
  char buffer[512];
  const ssize_t got = read(reading.get(), buffer, sizeof buffer);
  unsetenv("DIWARP_LOG_FD");
  CHECK(on_stderr.empty());
  REQUIRE(got > 0);
  CHECK(words_of(std::string(buffer, static_cast<size_t>(got))) == "hf");
}

TEST_CASE("a DIWARP_LOG_FD that is no open descriptor is told, and lines go to stderr") {
  for (const char* wrong : {"1000000", "three", "3x", "-1"}) {
    INFO(wrong);
    REQUIRE(setenv("DIWARP_LOG_FD", wrong, 1) == 0);
    const std::string text = logged_with("warn");
    unsetenv("DIWARP_LOG_FD");
    CHECK(text.find("DIWARP_LOG_FD=" + std::string(wrong)) != std::string::npos);
    CHECK(words_of(text) == "hf");
  }
}

TEST_CASE("DIWARP_LOG chooses the lowest level shown") {
  CHECK(words_of(logged_with("debug")) == "owhf");
  CHECK(words_of(logged_with("info")) == "whf");
  CHECK(words_of(logged_with("warn")) == "hf");
  CHECK(words_of(logged_with("error")) == "f");
  CHECK(words_of(logged_with("off")).empty());
}
