// SPDX-License-Identifier: Apache-2.0
#include "rdmap/opcodes.h"

#include <string>

#include "support/catch.h"

using namespace diwarp::rdmap;

namespace {

/// RFC 5040 figure 4 and RFC 7306 figure 2, and the lengths of the figures of the messages. 12 is
/// of docs/wire-format.md, as are those that go over datagrams.
struct Expected {
  uint8_t value;
  bool tagged;
  uint32_t queue_number;
  bool solicited;
  bool invalidates;
  size_t body_bytes;
  bool on_streams = true;
  bool on_datagrams = false;
};
constexpr Expected kExpected[] = {
    {0, true, 0, false, false, 0, true, false},     // RDMA Write
    {1, false, 1, false, false, 28, true, true},    // RDMA Read Request
    {2, true, 0, false, false, 0, true, true},      // RDMA Read Response
    {3, false, 0, false, false, 0, true, true},     // Send
    {4, false, 0, false, true, 0, true, true},      // Send with Invalidate
    {5, false, 0, true, false, 0, true, true},      // Send with Solicited Event
    {6, false, 0, true, true, 0, true, true},       // Send with Solicited Event and Invalidate
    {7, false, 2, false, false, 0, true, false},    // Terminate
    {8, false, 0, false, false, 8, true, false},    // Immediate Data
    {9, false, 0, true, false, 8, true, false},     // Immediate Data with Solicited Event
    {10, false, 1, false, false, 52, true, false},  // Atomic Request
    {11, false, 3, false, false, 12, true, false},  // Atomic Response
    {12, true, 0, false, false, 0, false, true},    // Write-Record
};

}  // namespace

TEST_CASE("the opcodes are as RFC 5040 and RFC 7306 define them") {
  for (const Expected& expected : kExpected) {
    CAPTURE(+expected.value);
    const OpcodeInfo* info = find_opcode(expected.value);
    REQUIRE(info != nullptr);
    CHECK(static_cast<uint8_t>(info->opcode) == expected.value);
    CHECK(info->tagged == expected.tagged);
    CHECK(info->queue_number == expected.queue_number);
    CHECK(info->solicited == expected.solicited);
    CHECK(info->invalidates == expected.invalidates);
    CHECK(info->body_bytes == expected.body_bytes);
    CHECK(info->one_segment == (expected.body_bytes != 0 || expected.value == 7));
    CHECK(info->on_streams == expected.on_streams);
    CHECK(info->on_datagrams == expected.on_datagrams);
    CHECK_FALSE(info->name.empty());
  }
}

TEST_CASE("no other opcode is known") {
  for (int value = 13; value < 256; ++value) {
    CHECK(find_opcode(static_cast<uint8_t>(value)) == nullptr);
  }
}

TEST_CASE("RDMAP's control octet has the version on top and the opcode below") {
  CHECK(control_octet(Opcode::rdma_write) == 0x40);
  CHECK(control_octet(Opcode::send) == 0x43);
  CHECK(control_octet(Opcode::terminate) == 0x47);
  CHECK(control_octet(Opcode::atomic_response) == 0x4B);
  CHECK(version_of(0xBA) == 2);
  CHECK(reserved_of(0xBA) == 3);
  CHECK(opcode_of(0xBA) == 10);
}

TEST_CASE("a work request sends the opcode of its kind, solicited or not") {
  using enum Opcode;
  using diwarp::WrOpcode;
  CHECK(opcode_of(WrOpcode::send, false) == send);
  CHECK(opcode_of(WrOpcode::send, true) == send_solicited);
  CHECK(opcode_of(WrOpcode::send_with_invalidate, false) == send_invalidate);
  CHECK(opcode_of(WrOpcode::send_with_invalidate, true) == send_solicited_invalidate);
  CHECK(opcode_of(WrOpcode::immediate, false) == immediate);
  CHECK(opcode_of(WrOpcode::immediate, true) == immediate_solicited);
  for (const bool solicited : {false, true}) {
    CHECK(opcode_of(WrOpcode::rdma_write, solicited) == rdma_write);
    CHECK(opcode_of(WrOpcode::rdma_read, solicited) == read_request);
    CHECK(opcode_of(WrOpcode::rdma_read_with_invalidate, solicited) == read_request);
    CHECK(opcode_of(WrOpcode::compare_swap, solicited) == atomic_request);
    CHECK(opcode_of(WrOpcode::write_record, solicited) == write_record);
  }
}

TEST_CASE("a work request may go wherever its message may") {
  for (const WrInfo& request : table::kWorkRequests) {
    CAPTURE(to_string(request.request));
    CHECK(info_of(request.request).request == request.request);
    if (request.local) continue;
    const OpcodeInfo& message = info_of(request.opcode);
    CHECK((message.on_streams || !request.on_streams));
    CHECK((message.on_datagrams || !request.on_datagrams));
    CHECK(info_of(request.solicited).type == message.type);
    CHECK_FALSE((request.gathers && message.one_segment));
  }
}
