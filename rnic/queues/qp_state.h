// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "diwarp/types.h"

/// The legal moves of a queue pair, as data.
namespace diwarp::rnic::transitions {

/// The mover that may make a move: the application with modify(), the same with a connection for
/// it, or the calls that connect and disconnect.
enum class Mover : uint8_t { application, stream, connection };

struct Transition {
  QpType type;
  QpState from;
  QpState to;
  Mover mover;
};

inline constexpr std::array kTable{
    Transition{QpType::ud, QpState::reset, QpState::init, Mover::application},
    Transition{QpType::ud, QpState::init, QpState::rts, Mover::application},
    Transition{QpType::ud, QpState::init, QpState::reset, Mover::application},
    Transition{QpType::ud, QpState::init, QpState::error, Mover::application},
    Transition{QpType::ud, QpState::rts, QpState::reset, Mover::application},
    Transition{QpType::ud, QpState::rts, QpState::error, Mover::application},
    Transition{QpType::ud, QpState::reset, QpState::error, Mover::application},
    Transition{QpType::ud, QpState::error, QpState::reset, Mover::application},
    Transition{QpType::rd, QpState::reset, QpState::init, Mover::application},
    Transition{QpType::rd, QpState::init, QpState::rts, Mover::application},
    Transition{QpType::rd, QpState::init, QpState::reset, Mover::application},
    Transition{QpType::rd, QpState::init, QpState::error, Mover::application},
    Transition{QpType::rd, QpState::rts, QpState::reset, Mover::application},
    Transition{QpType::rd, QpState::rts, QpState::error, Mover::application},
    Transition{QpType::rd, QpState::reset, QpState::error, Mover::application},
    Transition{QpType::rd, QpState::error, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::reset, QpState::init, Mover::application},
    Transition{QpType::rc, QpState::init, QpState::rts, Mover::connection},
    Transition{QpType::rc, QpState::init, QpState::rtr, Mover::stream},
    Transition{QpType::rc, QpState::rtr, QpState::rts, Mover::application},
    Transition{QpType::rc, QpState::rtr, QpState::closing, Mover::connection},
    Transition{QpType::rc, QpState::rtr, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::rtr, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::rts, QpState::sqd, Mover::application},
    Transition{QpType::rc, QpState::sqd, QpState::rts, Mover::application},
    Transition{QpType::rc, QpState::sqd, QpState::closing, Mover::connection},
    Transition{QpType::rc, QpState::sqd, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::sqd, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::init, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::init, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::rts, QpState::closing, Mover::connection},
    Transition{QpType::rc, QpState::rts, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::rts, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::closing, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::reset, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::error, QpState::reset, Mover::application},
};

/// Whether `mover` may make this move.
constexpr bool allowed(QpType type, QpState from, QpState to, Mover mover = Mover::application) {
  return std::any_of(kTable.begin(), kTable.end(), [&](const Transition& row) {
    return row.type == type && row.from == from && row.to == to && row.mover == mover;
  });
}

}  // namespace diwarp::rnic::transitions
