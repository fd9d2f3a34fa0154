// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "soak/completions.h"
#include "soak/line.h"
#include "soak/posting.h"
#include "soak/process.h"

namespace soak {

/// The queue pairs over datagrams: one of UD, one of RD.
class DatagramLines {
 public:
  DatagramLines(Process& process, Posting& posting, Completions& completions)
      : process_(process), posting_(posting), completions_(completions) {}

  /// Where the system has no descriptor or memory, it is tried again later.
  void open(Line& line);
  /// A queue pair in error reports everything; then it is made ready again, or anew.
  void keep(Line& line);
  /// Resets a queue pair: it is another source to its peers.
  void renew(Line& line);
  /// Says which addresses this process has.
  void announce();

 private:
  Process& process_;
  Posting& posting_;
  Completions& completions_;
};

}  // namespace soak
