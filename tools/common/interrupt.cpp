// SPDX-License-Identifier: Apache-2.0
#include "common/interrupt.h"

#include <signal.h>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

volatile sig_atomic_t noted_signal = 0;

void note(int signal) { noted_signal = signal; }

void note_signal(int signal) {
  struct sigaction action {};
  action.sa_handler = note;
  // No SA_RESTART, so that a waiting system call returns; the second signal finds the default.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void note_interrupts() {
  note_signal(SIGINT);
  note_signal(SIGTERM);
}

void note_hangup() {
  struct sigaction present {};
  sigaction(SIGHUP, nullptr, &present);
  if (present.sa_handler != SIG_IGN) note_signal(SIGHUP);
}

void check_interrupted() {
  if (noted_signal != 0) throw Interrupted(noted_signal);
}

}  // namespace diwarp::tools
