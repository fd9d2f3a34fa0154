// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.h"

#include <signal.h>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

volatile sig_atomic_t noted_signal = 0;

void note(int signal) { noted_signal = signal; }

}  // namespace

void note_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  // No SA_RESTART, so that a waiting system call returns; the second signal finds the default.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

void check_interrupted() {
  if (noted_signal != 0) throw Interrupted(noted_signal);
}

}  // namespace diwarp::tools
