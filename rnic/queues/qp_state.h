// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "diwarp/types.h"

namespace diwarp::rnic {

/// Whether a queue pair in this state begins nothing any more: what is posted now is flushed, after
/// all that was posted before.
constexpr bool is_ending(QpState state) {
  return state == QpState::closing || state == QpState::error;
}

}  // namespace diwarp::rnic

/// The legal transitions of a queue pair, as data.
namespace diwarp::rnic::transitions {

/// The calls that may make a transition: the application's modify(), the call that gives the queue
/// pair the stream of a connection, or those that connect and disconnect.
enum class Trigger : uint8_t { application, stream, connection };

struct Transition {
  QpType type;
  QpState from;
  QpState to;
  Trigger trigger;
};

inline constexpr std::array kTable{
    Transition{QpType::ud, QpState::reset, QpState::init, Trigger::application},
    Transition{QpType::ud, QpState::init, QpState::rts, Trigger::application},
    Transition{QpType::ud, QpState::init, QpState::reset, Trigger::application},
    Transition{QpType::ud, QpState::init, QpState::error, Trigger::application},
    Transition{QpType::ud, QpState::rts, QpState::reset, Trigger::application},
    Transition{QpType::ud, QpState::rts, QpState::error, Trigger::application},
    Transition{QpType::ud, QpState::reset, QpState::error, Trigger::application},
    Transition{QpType::ud, QpState::error, QpState::reset, Trigger::application},
    Transition{QpType::rd, QpState::reset, QpState::init, Trigger::application},
    Transition{QpType::rd, QpState::init, QpState::rts, Trigger::application},
    Transition{QpType::rd, QpState::init, QpState::reset, Trigger::application},
    Transition{QpType::rd, QpState::init, QpState::error, Trigger::application},
    Transition{QpType::rd, QpState::rts, QpState::reset, Trigger::application},
    Transition{QpType::rd, QpState::rts, QpState::error, Trigger::application},
    Transition{QpType::rd, QpState::reset, QpState::error, Trigger::application},
    Transition{QpType::rd, QpState::error, QpState::reset, Trigger::application},
    Transition{QpType::rc, QpState::reset, QpState::init, Trigger::application},
    Transition{QpType::rc, QpState::init, QpState::rts, Trigger::connection},
    Transition{QpType::rc, QpState::init, QpState::rtr, Trigger::stream},
    Transition{QpType::rc, QpState::rtr, QpState::rts, Trigger::application},
    Transition{QpType::rc, QpState::rtr, QpState::closing, Trigger::connection},
    Transition{QpType::rc, QpState::rtr, QpState::reset, Trigger::application},
    Transition{QpType::rc, QpState::rtr, QpState::error, Trigger::application},
    Transition{QpType::rc, QpState::rts, QpState::sqd, Trigger::application},
    Transition{QpType::rc, QpState::sqd, QpState::rts, Trigger::application},
    Transition{QpType::rc, QpState::sqd, QpState::closing, Trigger::connection},
    Transition{QpType::rc, QpState::sqd, QpState::reset, Trigger::application},
    Transition{QpType::rc, QpState::sqd, QpState::error, Trigger::application},
    Transition{QpType::rc, QpState::init, QpState::reset, Trigger::application},
    Transition{QpType::rc, QpState::init, QpState::error, Trigger::application},
    Transition{QpType::rc, QpState::rts, QpState::closing, Trigger::connection},
    Transition{QpType::rc, QpState::rts, QpState::reset, Trigger::application},
    Transition{QpType::rc, QpState::rts, QpState::error, Trigger::application},
    Transition{QpType::rc, QpState::closing, QpState::error, Trigger::application},
    Transition{QpType::rc, QpState::reset, QpState::error, Trigger::application},
    Transition{QpType::rc, QpState::error, QpState::reset, Trigger::application},
};

/// Whether `trigger` may make this transition.
constexpr bool allowed(QpType type, QpState from, QpState to,
                       Trigger trigger = Trigger::application) {
  return std::any_of(kTable.begin(), kTable.end(), [&](const Transition& row) {
    return row.type == type && row.from == from && row.to == to && row.trigger == trigger;
  });
}

}  // namespace diwarp::rnic::transitions
