// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/sink_stags.h"

#include <bit>
#include <vector>

#include "support/catch.h"

using namespace diwarp;
using rnic::SinkStags;

TEST_CASE("no sink's STag comes again, and none is 0") {
  SinkStags stags({3, 4});
  constexpr size_t kDrawn = 1 << 20;
  std::vector<bool> seen(uint64_t{1} << 32);
  size_t repeated = 0;
  for (size_t i = 0; i < kDrawn; ++i) {
    const STag stag = stags.next();
    if (stag == 0 || seen[stag]) ++repeated;
    seen[stag] = true;
  }
  CHECK(repeated == 0);
}

TEST_CASE("the STags of earlier sinks tell nothing of the next") {
  SinkStags stags({3, 4});
  SinkStags others({3, 5});
  constexpr int kDrawn = 1 << 14;
  size_t same = 0;
  std::vector<int> changed(32);  // how often each bit differs from the STag before
  STag before = stags.next();
  for (int i = 0; i < kDrawn; ++i) {
    const STag stag = stags.next();
    if (stag == others.next()) ++same;
    for (size_t bit = 0; bit < changed.size(); ++bit) changed[bit] += (stag ^ before) >> bit & 1;
    before = stag;
  }
  CHECK(same < 2);
  for (const int count : changed) {  // half of them, within 8 standard deviations
    CHECK(count > kDrawn / 2 - 512);
    CHECK(count < kDrawn / 2 + 512);
  }
}
