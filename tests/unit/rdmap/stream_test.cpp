// SPDX-License-Identifier: Apache-2.0
#include "rdmap/stream.h"

#include <catch2/catch.hpp>

#include "diwarp/types.h"
#include "wire/hex.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

std::vector<std::byte> ulpdu(const StreamSegment& segment, size_t payload = 0) {
  std::vector<std::byte> out(18 + payload);
  encode_send_header(segment, out);
  return out;
}

StreamFault fault_of(StreamReceiver& receiver, const StreamSegment& segment, size_t payload = 0) {
  return receiver.accept(ulpdu(segment, payload)).fault;
}

/// The fault of a first and only segment whose header differs in one field.
StreamFault first_fault(std::string_view header) {
  StreamReceiver receiver;
  return receiver.accept(hex(header)).fault;
}

}  // namespace

TEST_CASE("a ULPDU shorter than its header is truncated") {
  const auto untagged = hex("4143 00000000 00000000 00000001 00000000");
  const auto tagged = hex("c143 00000000 0000000000000000");
  for (size_t length = 0; length <= 18; ++length) {
    StreamReceiver receiver;
    const StreamFault fault = receiver.accept(ConstBytes(untagged).first(length)).fault;
    CHECK(fault == (length < 18 ? StreamFault::truncated : StreamFault::none));
  }
  for (size_t length = 0; length <= 14; ++length) {
    StreamReceiver receiver;
    const StreamFault fault = receiver.accept(ConstBytes(tagged).first(length)).fault;
    CHECK(fault == (length < 14 ? StreamFault::truncated : StreamFault::opcode));
  }
}

TEST_CASE("each field of a stream header is judged") {
  CHECK(first_fault("4143 00000000 00000000 00000001 00000000") == StreamFault::none);
  CHECK(first_fault("4043 00000000 00000000 00000001 00000000") == StreamFault::ddp_version);
  CHECK(first_fault("4243 00000000 00000000 00000001 00000000") == StreamFault::ddp_version);
  CHECK(first_fault("4103 00000000 00000000 00000001 00000000") == StreamFault::rdmap_version);
  CHECK(first_fault("4183 00000000 00000000 00000001 00000000") == StreamFault::rdmap_version);
  CHECK(first_fault("c143 00000000 00000000 00000001 00000000") == StreamFault::opcode);
  CHECK(first_fault("4143 00000000 00000001 00000001 00000000") == StreamFault::queue_number);
  CHECK(first_fault("4143 00000000 00000002 00000001 00000000") == StreamFault::queue_number);
  CHECK(first_fault("4143 00000000 00000000 00000000 00000000") == StreamFault::msn);
  CHECK(first_fault("4143 00000000 00000000 00000002 00000000") == StreamFault::msn);
  CHECK(first_fault("4143 00000000 00000000 00000001 00000001") == StreamFault::message_offset);
}

TEST_CASE("opcodes that are not spoken on a stream are faults") {
  for (const char* control : {"40", "41", "42", "44", "46", "48", "4c", "4f"}) {
    const std::string header = "41" + std::string(control) + "00000000 00000000 00000001 00000000";
    CHECK(first_fault(header) == StreamFault::opcode);
  }
}

TEST_CASE("reserved bits and the reserved word of a Send are not looked at on a stream") {
  CHECK(first_fault("7d73 ffffffff 00000000 00000001 00000000") == StreamFault::none);
}

TEST_CASE("a Terminate ends the stream") {
  CHECK(first_fault("4147 00000000 00000002 00000001 00000000 0012 0000") ==
        StreamFault::terminated);
  CHECK(first_fault("4147 00000000 00000000 00000001 00000000") == StreamFault::queue_number);
}

TEST_CASE("MSNs start at 1 and count messages, not segments") {
  StreamReceiver receiver;
  CHECK(fault_of(receiver, {.last = true, .msn = 1}, 5) == StreamFault::none);
  CHECK(fault_of(receiver, {.msn = 2}, 10) == StreamFault::none);
  CHECK(fault_of(receiver, {.msn = 2, .message_offset = 10}, 10) == StreamFault::none);
  CHECK(fault_of(receiver, {.last = true, .msn = 2, .message_offset = 20}, 1) == StreamFault::none);
  CHECK(fault_of(receiver, {.last = true, .msn = 3}) == StreamFault::none);
  CHECK(fault_of(receiver, {.last = true, .msn = 3}) == StreamFault::msn);
}

TEST_CASE("inside a message neither the MSN may change nor the MO jump") {
  const auto after_first = [](const StreamSegment& second) {
    StreamReceiver receiver;
    CHECK(fault_of(receiver, {.msn = 1}, 10) == StreamFault::none);
    CHECK_FALSE(receiver.at_message_start());
    return fault_of(receiver, second, 4);
  };
  CHECK(after_first({.msn = 1, .message_offset = 10}) == StreamFault::none);
  CHECK(after_first({.msn = 2, .message_offset = 10}) == StreamFault::msn);
  CHECK(after_first({.msn = 2, .message_offset = 0}) == StreamFault::msn);
  CHECK(after_first({.msn = 1, .message_offset = 0}) == StreamFault::message_offset);
  CHECK(after_first({.msn = 1, .message_offset = 9}) == StreamFault::message_offset);
  CHECK(after_first({.msn = 1, .message_offset = 11}) == StreamFault::message_offset);
  CHECK(after_first({.solicited = true, .msn = 1, .message_offset = 10}) == StreamFault::opcode);
}

TEST_CASE("the next message may have another opcode") {
  StreamReceiver receiver;
  CHECK(fault_of(receiver, {.solicited = true, .last = true, .msn = 1}) == StreamFault::none);
  CHECK(fault_of(receiver, {.last = true, .msn = 2}) == StreamFault::none);
  CHECK(fault_of(receiver, {.solicited = true, .last = true, .msn = 3}) == StreamFault::none);
}

TEST_CASE("a message may end with a segment of no bytes") {
  StreamReceiver receiver;
  CHECK(fault_of(receiver, {.msn = 1}, 10) == StreamFault::none);
  CHECK(fault_of(receiver, {.last = true, .msn = 1, .message_offset = 10}) == StreamFault::none);
  CHECK(receiver.at_message_start());
}

TEST_CASE("a stream message longer than the limit is a fault") {
  StreamReceiver receiver;
  const size_t piece = 65535 - 18;
  uint64_t offset = 0;
  std::vector<std::byte> bytes(18 + piece);
  for (; offset + piece <= kMaxMessage; offset += piece) {
    encode_send_header({.msn = 1, .message_offset = static_cast<uint32_t>(offset)}, bytes);
    if (receiver.accept(bytes).fault != StreamFault::none) FAIL(offset);
  }
  const auto rest = static_cast<size_t>(kMaxMessage - offset);
  const auto at = static_cast<uint32_t>(offset);
  StreamReceiver exact = receiver;
  CHECK(fault_of(exact, {.last = true, .msn = 1, .message_offset = at}, rest) == StreamFault::none);
  CHECK(fault_of(receiver, {.last = true, .msn = 1, .message_offset = at}, rest + 1) ==
        StreamFault::too_long);
}

TEST_CASE("streams do not share their MSNs") {
  StreamReceiver first;
  StreamReceiver second;
  CHECK(fault_of(first, {.last = true, .msn = 1}) == StreamFault::none);
  CHECK(fault_of(second, {.last = true, .msn = 1}) == StreamFault::none);
  CHECK(fault_of(first, {.last = true, .msn = 2}) == StreamFault::none);
}
