// SPDX-License-Identifier: Apache-2.0
#include "stat/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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

/// Whether the key is pressed within the time. `input`: -1 for no keyboard.
bool wait_for_key(int input, char key, nanoseconds duration) {
  const auto deadline = steady_clock::now() + duration;
  for (;;) {
    check_interrupted();
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
  termios keys = settings_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  if (has_settings_) ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  std::fputs(kEnter, stdout);
}

Screen::~Screen() {
  std::fputs(kLeave, stdout);
  std::fflush(stdout);
  if (has_settings_) ::tcsetattr(STDIN_FILENO, TCSANOW, &settings_);
}

void Screen::show(const std::vector<std::string>& lines) {
  const winsize size = terminal_size();
  const size_t count = std::min<size_t>(lines.size(), size.ws_row);
  std::string page = kTop;
  for (size_t i = 0; i < count; ++i) {
    if (i != 0) page += "\r\n";
    page += lines[i].substr(0, size.ws_col) + kEndOfLine;
  }
  page += kEndOfScreen;
  std::fputs(page.c_str(), stdout);
  std::fflush(stdout);
}

bool Screen::wait(nanoseconds duration) { return !wait_for_key(STDIN_FILENO, 'q', duration); }

void pause_for(nanoseconds duration) { wait_for_key(-1, 0, duration); }

}  // namespace diwarp::tools
