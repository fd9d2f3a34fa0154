// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <chrono>
#include <string>
#include <vector>

namespace diwarp::tools {

/// Whether both standard input and standard output are a terminal.
bool is_terminal();

/// The whole terminal, as top has it, from its making to its end, which leaves the terminal as it
/// was found.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// As many of the lines as there is room for; the last line of the terminal tells how many more
  /// there are.
  void show(const std::vector<std::string>& lines);
  /// False once the user has pressed q. Ctrl-Z leaves the terminal as it was found until the
  /// process goes on. Throws Interrupted, on SIGHUP as well.
  bool wait(std::chrono::nanoseconds duration);

 private:
  void enter();
  void leave();
  void draw() const;
  void heed_signals();

  bool has_settings_ = false;
  termios settings_{};
  std::vector<std::string> lines_;
};

/// What there is room for in so many rows.
std::vector<std::string> fitting(const std::vector<std::string>& lines, size_t rows);

/// Without a screen. Throws Interrupted.
void pause_for(std::chrono::nanoseconds duration);

}  // namespace diwarp::tools
