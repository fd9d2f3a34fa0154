// SPDX-License-Identifier: Apache-2.0
#include "stat/screen.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

/// The terminal's second page, without the cursor; and back.
constexpr const char* kEnter = "\033[?1049h\033[?25l";
constexpr const char* kLeave = "\033[?25h\033[?1049l";
constexpr const char* kTop = "\033[H";
constexpr const char* kEndOfLine = "\033[K";
constexpr const char* kEndOfScreen = "\033[J";

/// A signal that comes between a look at it and the wait is seen so late.
constexpr nanoseconds kLook = std::chrono::milliseconds(200);

winsize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size = {};
  if (size.ws_row == 0) size.ws_row = 24;
  if (size.ws_col == 0) size.ws_col = 80;
  return size;
}

int in_milliseconds(nanoseconds duration) {
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(duration).count());
}

volatile sig_atomic_t stop_noted = 0;
volatile sig_atomic_t continue_noted = 0;

void note_stop(int) { stop_noted = 1; }
void note_continue(int) { continue_noted = 1; }

/// No SA_RESTART, so that poll() returns.
void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

/// Whether the key is pressed within the time. `input`: -1 for no keyboard. `heed` is called after
/// each signal.
template <class Heed>
bool wait_for_key(int input, char key, nanoseconds duration, Heed&& heed) {
  const auto deadline = steady_clock::now() + duration;
  for (;;) {
    check_interrupted();
    heed();
    const nanoseconds left = deadline - steady_clock::now();
    if (left <= nanoseconds::zero()) return false;
    pollfd one{.fd = input, .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, in_milliseconds(std::min(left, kLook))) <= 0) continue;
    char pressed = 0;
    if (::read(input, &pressed, 1) <= 0) input = -1;
    if (pressed == key) return true;
  }
}

}  // namespace

bool is_terminal() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

Screen::Screen() {
  has_settings_ = ::tcgetattr(STDIN_FILENO, &settings_) == 0;
  note_hangup();
  handle(SIGTSTP, note_stop);
  handle(SIGCONT, note_continue);
  enter();
}

Screen::~Screen() {
  leave();
  handle(SIGTSTP, SIG_DFL);
  handle(SIGCONT, SIG_DFL);
}

void Screen::enter() {
  termios keys = settings_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  if (has_settings_) ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  std::fputs(kEnter, stdout);
}

void Screen::leave() {
  std::fputs(kLeave, stdout);
  std::fflush(stdout);
  if (has_settings_) ::tcsetattr(STDIN_FILENO, TCSANOW, &settings_);
}

/// After a stop that could not be foreseen (SIGSTOP) the shell has the terminal as it likes it.
void Screen::heed_signals() {
  if (stop_noted != 0) {
    leave();
    stop_noted = 0;
    handle(SIGTSTP, SIG_DFL);
    ::raise(SIGTSTP);  // returns when the process goes on
    handle(SIGTSTP, note_stop);
    continue_noted = 1;
  }
  if (continue_noted == 0) return;
  continue_noted = 0;
  enter();
  draw();
}

void Screen::show(const std::vector<std::string>& lines) {
  lines_ = lines;
  draw();
}

void Screen::draw() const {
  const winsize size = terminal_size();
  std::string page = kTop;
  const char* separator = "";
  for (const std::string& line : fitting(lines_, size.ws_row)) {
    page += separator + line.substr(0, size.ws_col) + kEndOfLine;
    separator = "\r\n";
  }
  page += kEndOfScreen;
  std::fputs(page.c_str(), stdout);
  std::fflush(stdout);
}

bool Screen::wait(nanoseconds duration) {
  return !wait_for_key(STDIN_FILENO, 'q', duration, [this] { heed_signals(); });
}

std::vector<std::string> fitting(const std::vector<std::string>& lines, size_t rows) {
  if (lines.size() <= rows || rows == 0) return lines;
  const size_t shown = rows - 1;
  std::vector<std::string> result(lines.begin(),
                                  lines.begin() + static_cast<std::ptrdiff_t>(shown));
  result.push_back(std::to_string(lines.size() - shown) + " more lines");
  return result;
}

void pause_for(nanoseconds duration) {
  wait_for_key(-1, 0, duration, [] {});
}

}  // namespace diwarp::tools
