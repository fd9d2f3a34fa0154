// SPDX-License-Identifier: Apache-2.0
#include "soak/lines.h"

#include <string>

namespace soak {

using diwarp::QpState;

Lines::Lines(Process& process, Posting& posting, Offers& offers, Completions& completions)
    : process_(process),
      posting_(posting),
      completions_(completions),
      datagrams_(process, posting, completions),
      streams_(process, posting, offers, completions) {}

void Lines::open() {
  datagrams_.open(process_.lines[0]);
  datagrams_.open(process_.lines[1]);
  datagrams_.announce();
}

void Lines::keep() {
  for (Line& line : process_.lines) line.place < 2 ? datagrams_.keep(line) : streams_.keep(line);
  posting_.post_receives(process_.lines[kSharedPlace]);
}

void Lines::disturb() {
  if (!process_.random.chance(0.01)) return;
  Line& line = process_.lines[process_.random.below(process_.lines.size())];
  if (!line.qp || line.state != Line::State::up) return;
  const std::string type(to_string(line.type));
  switch (process_.random.below(4)) {
    case 0:
      process_.ledger.count("disturbed.error." + type);
      line.qp->modify(QpState::error);
      return enter(line, Line::State::ending, process_.clock.now());
    case 1:
      if (line.id) {
        process_.ledger.count("disturbed.disconnect");
        line.id->disconnect();
        return enter(line, Line::State::ending, process_.clock.now());
      }
      process_.ledger.count("disturbed.reset." + type);
      return datagrams_.renew(line);
    case 2:
      if (line.id) return;
      process_.ledger.count("disturbed.anew." + type);
      line.qp.reset();
      completions_.drop_all(line);
      process_.forget_heard(line.type);
      datagrams_.open(line);
      return datagrams_.announce();
    default:
      if (!line.id) return;
      process_.ledger.count("disturbed.destroyed.RC");
      return streams_.close(line);
  }
}

}  // namespace soak
