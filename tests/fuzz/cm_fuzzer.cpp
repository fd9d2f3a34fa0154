// SPDX-License-Identifier: Apache-2.0
// The connection manager's calls in any order, over sockets on loopback.
#include "fuzz/cm_scene.h"
#include "fuzz/fixed_random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostSteps = 100;
  diwarp::fuzz::restart_random();
  diwarp::fuzz::Input in(data, size);
  diwarp::fuzz::CmScene scene(in);
  for (int step = 0; in.more() && step < kMostSteps; ++step) scene.act();
  scene.finish();
  return 0;
}
