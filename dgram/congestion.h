// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "dgram/bbr.h"
#include "dgram/congestion_controller.h"
#include "dgram/cubic.h"
#include "diwarp/reliable_options.h"

namespace diwarp::dgram {

/// A controller of either kind, in place. A Sender owns it.
class Congestion {
 public:
  explicit Congestion(CongestionControl control) {
    if (control == CongestionControl::cubic) controller_.emplace<Cubic>();
  }

  CongestionController& operator*() {
    if (Bbr* const bbr = std::get_if<Bbr>(&controller_)) return *bbr;
    return *std::get_if<Cubic>(&controller_);
  }
  const CongestionController& operator*() const { return *const_cast<Congestion&>(*this); }
  CongestionController* operator->() { return &**this; }
  const CongestionController* operator->() const { return &**this; }

 private:
  std::variant<Bbr, Cubic> controller_;
};

}  // namespace diwarp::dgram
