// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/cm_id_state.h"

#include "support/catch.h"

using namespace diwarp::rnic;

TEST_CASE("cm id: nothing is done for one that is closed") {
  CmIdState state;
  int done = 0;
  state.unless_closed([&] { ++done; });
  REQUIRE(state.move({CmState::idle}, CmState::over));
  state.unless_closed([&] { ++done; });
  CHECK(done == 2);
  REQUIRE(state.move({CmState::over}, CmState::closed));
  state.unless_closed([&] { ++done; });
  CHECK(done == 2);
}
