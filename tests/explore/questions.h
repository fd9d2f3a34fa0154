// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "choices.h"
#include "ends.h"
#include "run.h"
#include "scenario.h"
#include "wire.h"

namespace diwarp::explore {

/// What a run asks its choices: the fate of each datagram, and whether an event comes before it.
class Questions {
 public:
  struct Answer {
    std::optional<Event> event;
    Fate fate = Fate::deliver;
  };

  Questions(const Scenario& scenario, const Depth& depth, Choices& choices, const Wire& wire,
            const Ends& ends)
      : depth_(depth), choices_(choices), wire_(wire), ends_(ends), events_(scenario.events()) {}

  /// As many datagrams were asked about as shall be.
  bool over() const { return asked_datagrams_ >= depth_.datagrams; }
  /// About the next datagram.
  Answer ask_fate();
  /// With nothing on the wire.
  std::optional<Event> ask_event();
  /// It happens, and is not asked about again.
  void happens(const Event& event);

 private:
  void add_fates();
  void add_events();
  const Answer& ask();
  bool may_happen(const Event& event) const;

  const Depth& depth_;
  Choices& choices_;
  const Wire& wire_;
  const Ends& ends_;
  std::vector<Event> events_;  // that have not happened
  std::vector<Answer> alternatives_;
  uint32_t asked_datagrams_ = 0;
};

}  // namespace diwarp::explore
