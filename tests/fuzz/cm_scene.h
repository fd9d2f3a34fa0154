// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "fuzz/cm_calls.h"
#include "fuzz/cm_events.h"
#include "fuzz/cm_run.h"
#include "fuzz/cm_strangers.h"
#include "fuzz/input.h"

namespace diwarp::fuzz {

/// Two devices on loopback, and an application that calls the connection manager as the input
/// says.
class CmScene {
 public:
  explicit CmScene(Input& in);
  ~CmScene();
  CmScene(const CmScene&) = delete;
  CmScene& operator=(const CmScene&) = delete;

  void act();
  /// Each attempt has an outcome, and each connection an end.
  void finish();

 private:
  using Stage = CmModel::Stage;

  void change_party();
  void end_party(size_t place, bool destroyed);
  void close_channel();
  void wait_for_outcomes();
  void drop_all();

  CmRun run_;
  CmCalls calls_;
  CmEvents events_;
  CmStrangers strangers_;
};

}  // namespace diwarp::fuzz
