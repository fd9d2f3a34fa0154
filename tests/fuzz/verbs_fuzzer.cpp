// SPDX-License-Identifier: Apache-2.0
// The public verbs in any order, with right and wrong arguments, on three devices.
#include "fuzz/fixed_random.h"
#include "fuzz/verbs_scene.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostSteps = 200;
  diwarp::fuzz::restart_random();
  diwarp::fuzz::Input in(data, size);
  diwarp::fuzz::VerbsScene scene(in);
  for (int step = 0; in.more() && step < kMostSteps; ++step) scene.act();
  scene.finish();
  return 0;
}
