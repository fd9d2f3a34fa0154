// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "fuzz/cm_run.h"

namespace diwarp::fuzz {

/// The events of a run, which must fit what the models of the ids say. The devices move in settle()
/// alone.
class CmEvents {
 public:
  explicit CmEvents(CmRun& run) : run_(run) {}

  void settle();

 private:
  bool take_events();
  void take_event(size_t channel, CmEvent event);
  void take_request(size_t channel, CmEvent& event);
  void check_private_data(const CmEvent& event) const;

  CmRun& run_;
};

}  // namespace diwarp::fuzz
