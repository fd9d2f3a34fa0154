// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <utility>

#include "base/unique_fd.h"
#include "diwarp/error.h"
#include "line_writer.h"

namespace diwarp {
namespace log {
namespace {

/// Bytes of a line of a descriptor: what a pipe takes whole (PIPE_BUF).
constexpr size_t kLongestLine = 4096;

constexpr std::array<std::string_view, 6> kWords = {"trace", "debug", "info",
                                                    "warn",  "error", "off"};
constexpr const char* kLevelVariable = "DIWARP_LOG";
constexpr const char* kDescriptorVariable = "DIWARP_LOG_FD";

std::atomic<uint64_t> lost{0};

/// The thread runs a callback, with the lock.
thread_local bool in_callback = false;

/// Guards output() and the reading of the environment.
std::mutex mutex;

/// A copy of a descriptor that is open for writing; none, with errno set.
UniqueFd copy_of(int descriptor) {
  const int flags = ::fcntl(descriptor, F_GETFL);
  const bool writable = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && (flags & O_PATH) == 0;
  if (flags >= 0 && !writable) errno = EBADF;
  return UniqueFd(writable ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : -1);
}

/// Where lines go: one of a callback, a descriptor, stderr. With the lock.
class Output {
 public:
  /// Returns the callback of before, which ends without the lock.
  LogCallback set_callback(LogCallback callback) {
    callback_.swap(callback);
    return callback;
  }
  void set_descriptor(UniqueFd descriptor) {
    descriptor_ = std::move(descriptor);
    writer_ = {};
    told_lost_ = lost.load(std::memory_order_relaxed);  // by another
  }
  void write(const LogRecord& record);

 private:
  void call(const LogRecord& record) const;
  void write_line(const LogRecord& record);
  bool write_text(LogLevel level, std::chrono::system_clock::time_point time,
                  std::string_view text);

  LogCallback callback_;
  UniqueFd descriptor_;
  LineWriter writer_;
  uint64_t told_lost_ = 0;  // of `lost`
  spdlog::pattern_formatter formatter_{"[%Y-%m-%d %H:%M:%S.%f] [diwarp] [%n] %v"};
};

// Never destroyed: threads and destructors of static objects may still log at exit.
Output& output() {
  static Output* const instance = new Output;
  return *instance;
}

void Output::write(const LogRecord& record) {
  if (callback_)
    call(record);
  else
    write_line(record);
}

void Output::call(const LogRecord& record) const {
  struct Mark {
    Mark() { in_callback = true; }
    ~Mark() { in_callback = false; }
  } const mark;
  callback_(record);
}

/// As people read it.
std::string text_of(const LogRecord& record) {
  std::string text(record.device);
  if (record.qp_number != 0)
    text += (text.empty() ? "qp " : " qp ") + std::to_string(record.qp_number);
  if (!text.empty()) text += ": ";
  text += record.message.substr(0, kLongestLine);
  // One record is one line, and no terminal is told anything by it.
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
  return text;
}

void Output::write_line(const LogRecord& record) {
  const std::string text = text_of(record);
  const uint64_t now_lost = lost.load(std::memory_order_relaxed);
  if (now_lost != told_lost_ && write_text(LogLevel::warn, record.time,
                                           std::to_string(now_lost - told_lost_) +
                                               " lines of the log were lost before this one"))
    told_lost_ = now_lost;
  if (!write_text(record.level, record.time, text)) detail::count_lost();
}

bool Output::write_text(LogLevel level, std::chrono::system_clock::time_point time,
                        std::string_view text) {
  const std::string_view word = to_string(level);  // spdlog's words are others
  const spdlog::details::log_msg line(time, {}, spdlog::string_view_t(word.data(), word.size()),
                                      spdlog::level::info,
                                      spdlog::string_view_t(text.data(), text.size()));
  spdlog::memory_buf_t buffer;
  formatter_.format(line, buffer);
  if (buffer.size() > kLongestLine) {
    buffer.resize(kLongestLine);
    buffer[kLongestLine - 1] = '\n';
  }
  const int descriptor = descriptor_ ? descriptor_.get() : STDERR_FILENO;
  return writer_.write(descriptor, {buffer.data(), buffer.size()});
}

// A fork must not leave the lock with a thread that the child does not have. A callback that forks
// has it already, and gives it back in both processes.
void before_fork() {
  if (!in_callback) mutex.lock();
}
void after_fork() {
  if (!in_callback) mutex.unlock();
}
[[maybe_unused]] const int installed = pthread_atfork(&before_fork, &after_fork, &after_fork);

// --- The environment.

LogLevel log_level_now() {
  return static_cast<LogLevel>(detail::lowest.load(std::memory_order_relaxed) - 1);
}

void set_lowest(LogLevel level) {
  detail::lowest.store(static_cast<uint8_t>(static_cast<uint8_t>(level) + 1),
                       std::memory_order_relaxed);
}

/// While the environment is read, which shows() would wait for.
void complain(const std::string& message) {
  if (log_level_now() > LogLevel::warn) return;
  output().write({.level = LogLevel::warn,
                  .time = std::chrono::system_clock::now(),
                  .device = {},
                  .message = message});
}

/// Shortened: nobody means a long word.
std::string value_of(const char* variable, std::string_view value) {
  return std::string(variable) + "=" + std::string(value.substr(0, 80));
}

/// Returns what is wrong with it, if anything is.
std::string read_level() {
  const char* const found = std::getenv(kLevelVariable);
  const std::string_view word = found == nullptr ? "" : found;
  const auto* const place = std::ranges::find(kWords, word);
  const bool known = place != kWords.end();
  set_lowest(known ? static_cast<LogLevel>(place - kWords.begin()) : LogLevel::warn);
  if (known || word.empty()) return {};
  return value_of(kLevelVariable, word) +
         " names no level, and warn is taken: give trace, debug, info, warn, error or off";
}

void read_descriptor() {
  const char* const found = std::getenv(kDescriptorVariable);
  if (found == nullptr || *found == '\0') return;
  const std::string_view text = found;
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  UniqueFd copy = whole ? copy_of(number) : UniqueFd();
  if (copy) return output().set_descriptor(std::move(copy));
  complain(
      value_of(kDescriptorVariable, text) +
      " is no descriptor that is open for writing, and the log goes to stderr: say, for example, "
      "DIWARP_LOG_FD=3 PROGRAM 3>FILE");
}

std::atomic<bool> environment_read{false};

/// Once, by the first thread that asks, as programs may set it in main().
void read_environment() noexcept {
  if (environment_read.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(mutex);
  if (environment_read.load(std::memory_order_relaxed)) return;
  try {
    const std::string fault = read_level();
    read_descriptor();
    if (!fault.empty()) complain(fault);
  } catch (...) {
    set_lowest(LogLevel::warn);
  }
  environment_read.store(true, std::memory_order_release);
}

}  // namespace

namespace detail {

std::atomic<uint8_t> lowest{0};

bool shows(LogLevel level) noexcept {
  read_environment();
  const auto number = static_cast<uint8_t>(static_cast<uint8_t>(level) + 1);
  return level != LogLevel::off && lowest.load(std::memory_order_relaxed) <= number;
}

void count_lost() noexcept { lost.fetch_add(1, std::memory_order_relaxed); }

}  // namespace detail

void write(LogLevel level, const Subject& subject, std::string_view message) noexcept {
  if (!shows(level)) return;
  if (in_callback) return detail::count_lost();
  const int error = errno;  // the caller's
  try {
    const std::lock_guard lock(mutex);
    output().write({.level = level,
                    .time = std::chrono::system_clock::now(),
                    .device = subject.device,
                    .qp_number = subject.qp_number,
                    .message = message});
  } catch (...) {
    detail::count_lost();
  }
  errno = error;
}

void debug(std::string_view message) { write(LogLevel::debug, {}, message); }
void info(std::string_view message) { write(LogLevel::info, {}, message); }
void warn(std::string_view message) { write(LogLevel::warn, {}, message); }
void error(std::string_view message) { write(LogLevel::error, {}, message); }

}  // namespace log

std::string_view to_string(LogLevel level) {
  const auto index = static_cast<size_t>(level);
  return index < log::kWords.size() ? log::kWords[index] : "unknown";
}

void set_log_level(LogLevel level) noexcept {
  log::read_environment();  // so that it does not undo this later
  log::set_lowest(level);
}

LogLevel log_level() noexcept {
  log::read_environment();
  return log::log_level_now();
}

void set_log_callback(LogCallback callback) {
  if (log::in_callback)
    throw Error(make_error_code(Errc::invalid_state),
                "A callback of the log cannot be replaced from within one: do it in another call");
  log::read_environment();
  LogCallback before;
  const std::lock_guard lock(log::mutex);
  before = log::output().set_callback(std::move(callback));
}

void set_log_descriptor(int descriptor) {
  if (log::in_callback)
    throw Error(
        make_error_code(Errc::invalid_state),
        "The log's descriptor cannot be set from within its callback: do it in another call");
  log::read_environment();
  UniqueFd copy = descriptor == -1 ? UniqueFd() : log::copy_of(descriptor);
  if (!copy && descriptor != -1)
    throw Error(std::error_code(errno, std::system_category()),
                "The log cannot be written to descriptor " + std::to_string(descriptor) +
                    ": give one that is open for writing");
  LogCallback before;
  const std::lock_guard lock(log::mutex);
  log::output().set_descriptor(std::move(copy));
  before = log::output().set_callback({});
}

uint64_t log_lines_lost() noexcept { return log::lost.load(std::memory_order_relaxed); }

}  // namespace diwarp
