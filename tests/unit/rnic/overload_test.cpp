// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/overload.h"

#include "support/catch.h"

using diwarp::rnic::Overload;

namespace {

/// A look at the poller that finds input of so many sources, the first ones of `epochs`.
template <size_t kSources>
void look(Overload& overload, uint32_t (&epochs)[kSources], size_t with_input) {
  overload.before_look();
  for (size_t i = 0; i < with_input; ++i) overload.count(epochs[i]);
  overload.after_look();
}

}  // namespace

TEST_CASE("overload: it lasts until few enough sources had input in an epoch") {
  Overload overload(2, 3);
  uint32_t epochs[4] = {};
  CHECK_FALSE(overload.lasts());
  overload.begin();
  CHECK(overload.lasts());
  for (int i = 0; i < 3; ++i) look(overload, epochs, 3);
  look(overload, epochs, 2);
  CHECK(overload.lasts());  // three had input in the first epoch
  for (int i = 0; i < 2; ++i) look(overload, epochs, 2);
  CHECK(overload.lasts());  // the second one is not over before the next look
  overload.before_look();
  CHECK_FALSE(overload.lasts());
}

TEST_CASE("overload: a source counts once in an epoch, and anew in the next one") {
  Overload overload(2, 2);
  uint32_t epochs[3] = {};
  overload.begin();
  for (int i = 0; i < 2; ++i) look(overload, epochs, 2);  // four times, but of two sources
  overload.before_look();
  CHECK_FALSE(overload.lasts());

  overload.begin();
  look(overload, epochs, 3);
  look(overload, epochs, 0);
  for (int i = 0; i < 2; ++i) look(overload, epochs, 3);
  overload.before_look();
  CHECK(overload.lasts());
}

TEST_CASE("overload: looks are counted only while one lasts, and one that begins has an epoch") {
  Overload overload(1, 2);
  uint32_t epochs[2] = {};
  for (int i = 0; i < 5; ++i) look(overload, epochs, 2);
  CHECK_FALSE(overload.lasts());
  overload.begin();
  look(overload, epochs, 1);
  overload.before_look();
  CHECK(overload.lasts());
  overload.after_look();
  overload.before_look();
  CHECK_FALSE(overload.lasts());
}
