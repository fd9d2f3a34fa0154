// SPDX-License-Identifier: Apache-2.0
#include "base/serial.h"

#include "support/catch.h"

using namespace diwarp;

TEST_CASE("serial numbers come before each other across the wrap") {
  CHECK(serial_before(1, 2));
  CHECK_FALSE(serial_before(2, 1));
  CHECK_FALSE(serial_before(5, 5));
  CHECK(serial_before(0xFFFFFFFF, 0));
  CHECK_FALSE(serial_before(0, 0xFFFFFFFF));
  CHECK(serial_before(0xFFFFFFF0, 0x10));
  CHECK(serial_before(0, 0x7FFFFFFF));
  CHECK_FALSE(serial_before(0x7FFFFFFF, 0));
}
