// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include <diwarp/verbs.h>

#include "soak/completions.h"
#include "soak/line.h"
#include "soak/offers.h"
#include "soak/posting.h"
#include "soak/process.h"

namespace soak {

/// The queue pairs over connections, one to each peer, half of which share their receives.
class StreamLines {
 public:
  StreamLines(Process& process, Posting& posting, Offers& offers, Completions& completions)
      : process_(process), posting_(posting), offers_(offers), completions_(completions) {}

  void keep(Line& line);
  void take_events();
  /// Its connection, queue pair and all that is posted to it go.
  void close(Line& line);

 private:
  Line* line_of(uint64_t id_number);
  void take_event(diwarp::CmEvent event);
  void open(Line& line, uint32_t remote);
  void connect(Line& line, uint32_t remote, const std::function<void()>& begin);
  void begin_connection(Line& line);
  void answer(diwarp::CmEvent& event);

  Process& process_;
  Posting& posting_;
  Offers& offers_;
  Completions& completions_;
};

}  // namespace soak
