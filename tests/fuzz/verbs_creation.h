// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fuzz/verbs_run.h"

namespace diwarp::fuzz {

/// Makes the objects of a run, with right and wrong options.
class VerbsCreation {
 public:
  explicit VerbsCreation(VerbsRun& run) : run_(run) {}

  void create();

 private:
  void create_cq();
  void create_region();
  void create_srq();
  void create_window();
  void create_qp();
  std::optional<QueuePairInit> init_of(VerbsQp& made);

  VerbsRun& run_;
};

}  // namespace diwarp::fuzz
