// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_scene.h"
#include "fuzz/fixed_random.h"
#include "fuzz/input.h"

/// UD and RD: a queue pair of which strangers want the worst, beside an honest peer. The input says
/// what they send, what the applications do, and how time passes.

using namespace diwarp::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  restart_random();
  Input input(data, size);
  DatagramScene scene(input);
  while (input.more()) scene.act(input);
  scene.finish();
  return 0;
}
