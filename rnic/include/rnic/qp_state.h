// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "diwarp/types.h"

/// The legal moves of a queue pair, as data.
namespace diwarp::rnic::transitions {

enum class Mover : uint8_t { application, connection };

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
    Transition{QpType::rc, QpState::reset, QpState::init, Mover::application},
    Transition{QpType::rc, QpState::init, QpState::rts, Mover::connection},
    Transition{QpType::rc, QpState::init, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::init, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::rts, QpState::closing, Mover::connection},
    Transition{QpType::rc, QpState::rts, QpState::reset, Mover::application},
    Transition{QpType::rc, QpState::rts, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::closing, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::reset, QpState::error, Mover::application},
    Transition{QpType::rc, QpState::error, QpState::reset, Mover::application},
};

/// Whether the application may make this move with modify().
constexpr bool allowed(QpType type, QpState from, QpState to) {
  return std::any_of(kTable.begin(), kTable.end(), [&](const Transition& row) {
    return row.type == type && row.from == from && row.to == to &&
           row.mover == Mover::application;
  });
}

}  // namespace diwarp::rnic::transitions
