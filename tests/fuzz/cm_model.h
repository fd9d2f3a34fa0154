// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "diwarp/connection_event.h"

namespace diwarp::fuzz {

/// The knowledge of a run about one connection manager id: what it may be asked next, and what may
/// be told of it. The events of an id are taken before its next call.
class CmModel {
 public:
  enum class Stage : uint8_t {
    idle,
    bound,
    resolved,
    routed,
    listening,
    connecting,
    requested,
    accepting,
    established,
    over,
  };
  enum class Call : uint8_t {
    resolve_addr,
    resolve_route,
    bind,
    listen,
    connect,
    accept,
    reject,
    disconnect,
  };

  CmModel(uint64_t number, uint64_t context, Stage stage = Stage::idle)
      : number_(number), context_(context), stage_(stage) {}

  uint64_t number() const { return number_; }
  Stage stage() const { return stage_; }
  /// Whether the id may be asked this now.
  bool allows(Call call) const;
  /// The id took the call.
  void called(Call call);
  /// accept() failed since the peer has gone.
  void gave_up() { stage_ = Stage::over; }
  void set_context(uint64_t context) { context_ = context; }
  /// Its channel is gone: nothing is told any more, so nothing is known.
  void become_deaf() { deaf_ = true; }
  bool deaf() const { return deaf_; }

  /// An event of this id. Ends the program where none such may come.
  void take(const CmEventInfo& event);
  /// An outcome is still to come.
  bool waits() const {
    return !deaf_ && (stage_ == Stage::connecting || stage_ == Stage::accepting);
  }

 private:
  bool may_come(CmEventType type) const;

  uint64_t number_;
  uint64_t context_;
  Stage stage_;
  bool resolving_ = false;
  bool deaf_ = false;
};

}  // namespace diwarp::fuzz
