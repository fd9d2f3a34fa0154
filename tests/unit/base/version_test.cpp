// SPDX-License-Identifier: Apache-2.0
#include "diwarp/version.h"

#include "support/catch.h"

using namespace diwarp;

// DIWARP_PROJECT_VERSION is the version that CMake knows.

TEST_CASE("headers, library and build have one version") {
  CHECK(version() == kHeaderVersion);
  CHECK(to_string(version()) == DIWARP_PROJECT_VERSION);
}

TEST_CASE("versions are ordered as releases are") {
  CHECK(Version{0, 1, 0} < Version{0, 1, 1});
  CHECK(Version{0, 9, 9} < Version{0, 10, 0});
  CHECK(Version{0, 10, 0} < Version{1, 0, 0});
  CHECK(to_string(Version{1, 20, 3}) == "1.20.3");
}
