// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/guarded_memory.h"
#include "fuzz/verbs_completions.h"
#include "fuzz/verbs_creation.h"
#include "fuzz/verbs_requests.h"
#include "fuzz/verbs_run.h"
#include "fuzz/verbs_states.h"

namespace diwarp::fuzz {

/// Devices on a network in memory, and an application that calls the verbs as the input says.
class VerbsScene {
 public:
  explicit VerbsScene(Input& in);
  ~VerbsScene();
  VerbsScene(const VerbsScene&) = delete;
  VerbsScene& operator=(const VerbsScene&) = delete;

  void act();
  /// All that is posted completes.
  void finish();

 private:
  void destroy();

  GuardedMemory registered_{1024, 21};  // by register_memory: a registration outlives regions
  VerbsRun run_;
  VerbsCreation creation_;
  VerbsCompletions completions_;
  VerbsStates states_;
  VerbsRequests requests_;
};

}  // namespace diwarp::fuzz
