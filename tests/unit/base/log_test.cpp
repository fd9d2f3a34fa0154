// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"
#include "diwarp/error.h"
#include "support/catch.h"

using namespace diwarp;

namespace {

/// The log is the process's: each case leaves it as it was.
struct LogKept {
  ~LogKept() {
    set_log_callback({});
    set_log_descriptor(-1);
    set_log_level(LogLevel::warn);
  }
};

struct Line {
  LogLevel level;
  std::string device;
  uint32_t qp_number;
  std::string message;
};

/// A callback's lines.
struct Lines : LogKept {
  explicit Lines(LogLevel level) {
    set_log_level(level);
    set_log_callback([this](const LogRecord& record) {
      all.push_back({record.level, std::string(record.device), record.qp_number,
                     std::string(record.message)});
    });
  }
  ~Lines() { set_log_callback({}); }

  std::vector<Line> all;
};

struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reading.reset(ends[0]);
    writing.reset(ends[1]);
    REQUIRE(::fcntl(reading.get(), F_SETFL, O_NONBLOCK) == 0);
  }

  /// All that is there.
  std::string read_all() { return read_from(reading.get()); }

  static std::string read_from(int descriptor) {
    std::string text;
    std::array<char, 4096> buffer;
    for (ssize_t got; (got = ::read(descriptor, buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<size_t>(got));
    return text;
  }

  UniqueFd reading;
  UniqueFd writing;
};

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size())
    ++found;
  return found;
}

/// Writes lines until one is lost.
size_t fill_with_lines() {
  const uint64_t before = log_lines_lost();
  size_t written = 0;
  while (log_lines_lost() == before && written < 100'000) {
    log::warn("a line that fills what takes it, until there is no more room for another one");
    ++written;
  }
  REQUIRE(log_lines_lost() == before + 1);
  return written - 1;
}

std::error_code refusal_of(int descriptor) {
  try {
    set_log_descriptor(descriptor);
  } catch (const Error& error) {
    return error.code();
  }
  return {};
}

bool is_pending(int signal) {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, signal) == 1;
}

}  // namespace

TEST_CASE("levels have the words of DIWARP_LOG") {
  CHECK(to_string(LogLevel::trace) == "trace");
  CHECK(to_string(LogLevel::debug) == "debug");
  CHECK(to_string(LogLevel::info) == "info");
  CHECK(to_string(LogLevel::warn) == "warn");
  CHECK(to_string(LogLevel::error) == "error");
  CHECK(to_string(LogLevel::off) == "off");
}

TEST_CASE("a callback gets the lines of the level and of those above it") {
  Lines lines(LogLevel::info);
  CHECK(log_level() == LogLevel::info);
  log::debug("too low");
  log::write(LogLevel::info, {.device = "192.0.2.1", .qp_number = 7}, "about a queue pair");
  log::warn("about nothing");
  REQUIRE(lines.all.size() == 2);
  CHECK(lines.all[0].level == LogLevel::info);
  CHECK(lines.all[0].device == "192.0.2.1");
  CHECK(lines.all[0].qp_number == 7);
  CHECK(lines.all[0].message == "about a queue pair");
  CHECK(lines.all[1].level == LogLevel::warn);
  CHECK(lines.all[1].device.empty());
  CHECK(lines.all[1].qp_number == 0);
}

TEST_CASE("the level changes at run time, and off shows nothing") {
  Lines lines(LogLevel::off);
  log::error("an error");
  log::write(LogLevel::off, {}, "a line of no level");
  CHECK(lines.all.empty());
  set_log_level(LogLevel::trace);
  log::write(LogLevel::trace, {}, "a message");
  log::write(LogLevel::off, {}, "a line of no level");
  CHECK(lines.all.size() == 1);
}

TEST_CASE("what is not shown is not composed, and what cannot be composed is lost") {
  Lines lines(LogLevel::info);
  int composed = 0;
  const auto compose = [&] { return std::to_string(++composed); };
  log::tell(LogLevel::debug, {}, compose);
  CHECK(composed == 0);
  log::tell(LogLevel::info, {}, compose);
  CHECK(composed == 1);
  const uint64_t before = log_lines_lost();
  log::tell(LogLevel::info, {}, []() -> std::string { throw std::bad_alloc(); });
  CHECK(log_lines_lost() == before + 1);
  CHECK(lines.all.size() == 1);
}

TEST_CASE("a callback that throws, or that logs, loses that line and no other") {
  const LogKept kept;
  const uint64_t before = log_lines_lost();
  int calls = 0;
  set_log_callback([&](const LogRecord& record) {
    ++calls;
    log::warn("from within");
    if (record.message == "throw") throw std::runtime_error("the callback's");
  });
  log::warn("throw");
  log::warn("go on");
  CHECK(calls == 2);
  CHECK(log_lines_lost() == before + 3);
}

TEST_CASE("a callback cannot replace itself") {
  const LogKept kept;
  int refused = 0;
  set_log_callback([&](const LogRecord&) {
    const auto try_one = [&](auto&& call) {
      try {
        call();
      } catch (const Error& error) {
        refused += error.code() == make_error_code(Errc::invalid_state) ? 1 : 0;
      }
    };
    try_one([] { set_log_callback({}); });
    try_one([] { set_log_descriptor(-1); });
  });
  log::warn("one");
  CHECK(refused == 2);
}

TEST_CASE("a line of a descriptor has the time, the level, the device, the queue pair") {
  const LogKept kept;
  Pipe pipe;
  set_log_descriptor(pipe.writing.get());
  pipe.writing.reset();  // the log has a copy
  log::write(LogLevel::warn, {.device = "192.0.2.1", .qp_number = 7}, "what happened");
  log::write(LogLevel::error, {.device = "192.0.2.1"}, "what happened");
  log::error("what happened");
  const std::string text = pipe.read_all();
  CHECK(count(text, "\n") == 3);
  CHECK(text.starts_with("[20"));
  CHECK(count(text, "] [diwarp] [warn] 192.0.2.1 qp 7: what happened\n") == 1);
  CHECK(count(text, "] [diwarp] [error] 192.0.2.1: what happened\n") == 1);
  CHECK(count(text, "] [diwarp] [error] what happened\n") == 1);
}

TEST_CASE("one record is one line of bounded length, whatever its text has") {
  const LogKept kept;
  Pipe pipe;
  set_log_descriptor(pipe.writing.get());
  log::warn("a\nb\x1b[31m\tc\x7f");
  CHECK(count(pipe.read_all(), "] a?b?[31m?c?\n") == 1);
  log::warn(std::string(10'000, 'x'));
  const std::string text = pipe.read_all();
  CHECK(text.size() == 4096);
  CHECK(count(text, "\n") == 1);
  CHECK(text.ends_with("x\n"));
}

TEST_CASE("a full pipe loses lines without waiting, and the next line says how many") {
  const LogKept kept;
  Pipe pipe;
  set_log_descriptor(pipe.writing.get());
  const size_t written = fill_with_lines();
  const uint64_t before = log_lines_lost();
  for (int i = 0; i < 9; ++i) log::warn("lost as well");
  CHECK(log_lines_lost() == before + 9);
  const std::string first = pipe.read_all();
  CHECK(count(first, "\n") == written);
  CHECK(count(first, "lost as well") == 0);
  log::warn("there is room again");
  const std::string rest = pipe.read_all();
  CHECK(count(rest, " lines of the log were lost before this one\n") == 1);
  CHECK(count(rest, "there is room again\n") == 1);
  log::warn("and it is told once");
  CHECK(count(pipe.read_all(), "were lost") == 0);
}

TEST_CASE("a socket that takes a part of a line gets its end before the next one") {
  const LogKept kept;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  set_log_descriptor(writing.get());
  fill_with_lines();
  Pipe::read_from(reading.get());
  log::warn("there is room again");
  const std::string rest = Pipe::read_from(reading.get());
  CHECK((rest.starts_with("[") || rest.starts_with("\n[")));
  CHECK(count(rest, "there is room again\n") == 1);
}

TEST_CASE("a pipe or socket that nobody reads raises no signal") {
  const LogKept kept;
  REQUIRE(::signal(SIGPIPE, SIG_DFL) != SIG_ERR);
  const uint64_t before = log_lines_lost();
  Pipe pipe;
  set_log_descriptor(pipe.writing.get());
  pipe.reading.reset();
  log::warn("nobody reads");
  CHECK(log_lines_lost() == before + 1);
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  set_log_descriptor(ends[1]);
  ::close(ends[0]);
  ::close(ends[1]);
  log::warn("nobody reads");
  CHECK(log_lines_lost() == before + 2);
  CHECK_FALSE(is_pending(SIGPIPE));
}

TEST_CASE("a SIGPIPE that the application keeps blocked stays pending") {
  const LogKept kept;
  sigset_t set;
  sigset_t mask;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  REQUIRE(::pthread_sigmask(SIG_BLOCK, &set, &mask) == 0);
  REQUIRE(::raise(SIGPIPE) == 0);
  Pipe pipe;
  set_log_descriptor(pipe.writing.get());
  pipe.reading.reset();
  log::warn("nobody reads");
  CHECK(is_pending(SIGPIPE));
  int number = 0;
  CHECK(::sigwait(&set, &number) == 0);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

TEST_CASE("a file that is as long as it may be raises no signal") {
  const LogKept kept;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  set_log_descriptor(::fileno(file));
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  const uint64_t lost = log_lines_lost();
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &none) == 0);
  log::warn("no room");
  ::setrlimit(RLIMIT_FSIZE, &before);
  CHECK(log_lines_lost() == lost + 1);
  CHECK_FALSE(is_pending(SIGXFSZ));
  std::fclose(file);
}

TEST_CASE("the log refuses a descriptor that cannot be written to") {
  const LogKept kept;
  Pipe pipe;
  const int closed = pipe.writing.get();
  CHECK(refusal_of(pipe.reading.get()) == std::errc::bad_file_descriptor);
  pipe.writing.reset();
  CHECK(refusal_of(closed) == std::errc::bad_file_descriptor);
  CHECK(refusal_of(-5) == std::errc::bad_file_descriptor);
}

TEST_CASE("a line that is logged leaves errno alone") {
  const LogKept kept;
  Pipe pipe;
  set_log_descriptor(pipe.writing.get());
  pipe.reading.reset();
  errno = EXDEV;
  log::warn("nobody reads");
  CHECK(errno == EXDEV);
}
