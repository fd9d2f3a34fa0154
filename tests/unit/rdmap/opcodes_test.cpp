// SPDX-License-Identifier: Apache-2.0
#include "rdmap/opcodes.h"

#include <catch2/catch.hpp>

using namespace diwarp::rdmap;

TEST_CASE("the opcodes spoken here have the facts of RFC 5040") {
  const OpcodeFacts* send = find_opcode(3);
  REQUIRE(send != nullptr);
  CHECK(send->opcode == Opcode::send);
  CHECK_FALSE(send->tagged);
  CHECK(send->queue_number == 0);
  CHECK_FALSE(send->solicited);
  CHECK(send->on_datagrams);

  const OpcodeFacts* solicited = find_opcode(5);
  REQUIRE(solicited != nullptr);
  CHECK(solicited->opcode == Opcode::send_solicited);
  CHECK_FALSE(solicited->tagged);
  CHECK(solicited->queue_number == 0);
  CHECK(solicited->solicited);
  CHECK(solicited->on_datagrams);

  const OpcodeFacts* terminate = find_opcode(7);
  REQUIRE(terminate != nullptr);
  CHECK(terminate->opcode == Opcode::terminate);
  CHECK_FALSE(terminate->tagged);
  CHECK(terminate->queue_number == 2);
  CHECK_FALSE(terminate->on_datagrams);
}

TEST_CASE("no other opcode is known") {
  for (int value = 0; value < 256; ++value) {
    if (value == 3 || value == 5 || value == 7) continue;
    CHECK(find_opcode(static_cast<uint8_t>(value)) == nullptr);
  }
}

TEST_CASE("RDMAP's control octet has the version on top and the opcode below") {
  CHECK(control_octet(Opcode::send) == 0x43);
  CHECK(control_octet(Opcode::send_solicited) == 0x45);
  CHECK(control_octet(Opcode::terminate) == 0x47);
  CHECK(version_of(0xBA) == 2);
  CHECK(reserved_of(0xBA) == 3);
  CHECK(opcode_of(0xBA) == 10);
}
