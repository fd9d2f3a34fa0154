// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "soak/completions.h"
#include "soak/datagram_lines.h"
#include "soak/offers.h"
#include "soak/posting.h"
#include "soak/process.h"
#include "soak/stream_lines.h"

namespace soak {

/// Queue pairs: how they come, go, and recover.
class Lines {
 public:
  Lines(Process& process, Posting& posting, Offers& offers, Completions& completions);

  /// Opens those that need no peer, and says so.
  void open();
  void take_events() { streams_.take_events(); }
  void keep();
  /// What an application may do to its queue pairs at any time.
  void disturb();

 private:
  Process& process_;
  Posting& posting_;
  Completions& completions_;
  DatagramLines datagrams_;
  StreamLines streams_;
};

}  // namespace soak
