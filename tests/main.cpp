// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER  // for version 2, which is compiled here; version 3 is a library
#include "support/catch.h"

int main(int argc, char* argv[]) { return Catch::Session().run(argc, argv); }
