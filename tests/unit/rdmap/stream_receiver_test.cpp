// SPDX-License-Identifier: Apache-2.0
#include "rdmap/stream_receiver.h"

#include <array>

#include "diwarp/types.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "unit/base/allocations.h"
#include "unit/rdmap/faults.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

std::vector<std::byte> ulpdu(const StreamSegment& segment, size_t payload = 0) {
  std::vector<std::byte> out(18 + payload);
  const size_t header = encode_header(segment, out);
  out.resize(header + payload);
  return out;
}

Fault fault_of(StreamReceiver& receiver, const StreamSegment& segment, size_t payload = 0) {
  return receiver.accept(ulpdu(segment, payload)).fault;
}

/// The fault of a first ULPDU.
Fault first_fault(std::string_view bytes) {
  StreamReceiver receiver;
  return receiver.accept(hex(bytes)).fault;
}

std::string body_of(size_t bytes) { return std::string(2 * bytes, '0'); }

/// A segment that starts a message of the opcode, right in every field.
StreamSegment whole(Opcode opcode, uint32_t msn = 1) {
  return {.opcode = opcode, .last = true, .msn = msn};
}

size_t right_length(Opcode opcode) {
  const OpcodeInfo& info = info_of(opcode);
  return info.body_bytes != 0 ? info.body_bytes : 20;
}

}  // namespace

TEST_CASE("bytes that are still to come count like those that are there") {
  StreamReceiver receiver;
  const StreamSegment first{.opcode = Opcode::send, .last = false, .msn = 1};
  const auto begun = receiver.accept(ulpdu(first, 3), 7);
  REQUIRE_FALSE(begun.fault);
  CHECK(begun.segment.payload.size() == 3);
  CHECK(begun.segment.missing == 7);
  CHECK(begun.segment.length() == 10);
  StreamSegment second = first;
  second.message_offset = 3;
  CHECK(StreamReceiver(receiver).accept(ulpdu(second)).fault == fault::kInvalidOffset);
  second.message_offset = 10;
  CHECK_FALSE(StreamReceiver(receiver).accept(ulpdu(second)).fault);

  StreamReceiver other;
  const StreamSegment request = whole(Opcode::read_request);
  const size_t body = right_length(Opcode::read_request);
  CHECK_FALSE(StreamReceiver(other).accept(ulpdu(request, body - 1), 1).fault);
  CHECK(StreamReceiver(other).accept(ulpdu(request, body), 1).fault == fault::kMessageTooLong);
}

TEST_CASE("a ULPDU shorter than its header is a fault") {
  const auto untagged = hex("4143 00000000 00000000 00000001 00000000");
  const auto tagged = hex("c140 00000000 0000000000000000");
  for (size_t length = 0; length <= 18; ++length) {
    StreamReceiver receiver;
    CHECK(receiver.accept(ConstBytes(untagged).first(length)).fault ==
          (length < 18 ? Fault(fault::kUnspecified) : kNoFault));
  }
  for (size_t length = 0; length <= 14; ++length) {
    StreamReceiver receiver;
    CHECK(receiver.accept(ConstBytes(tagged).first(length)).fault ==
          (length < 14 ? Fault(fault::kUnspecified) : kNoFault));
  }
}

TEST_CASE("another DDP version is a fault of the tagged or the untagged model") {
  for (const char* control : {"40", "42", "43", "00", "02"}) {
    const std::string header = std::string(control) + "43 00000000 00000000 00000001 00000000";
    CHECK(first_fault(header) == fault::kUntaggedInvalidVersion);
  }
  for (const char* control : {"c0", "c2", "c3", "80", "83"}) {
    const std::string header = std::string(control) + "40 00000000 0000000000000000";
    CHECK(first_fault(header) == fault::kTaggedInvalidVersion);
  }
}

TEST_CASE("the DDP version is checked before the length, which another one may change") {
  CHECK(first_fault("42") == fault::kUntaggedInvalidVersion);
  CHECK(first_fault("c240") == fault::kTaggedInvalidVersion);
}

TEST_CASE("each field of an untagged header is checked") {
  CHECK(first_fault("4143 00000000 00000000 00000001 00000000") == kNoFault);
  CHECK(first_fault("4103 00000000 00000000 00000001 00000000") == fault::kInvalidVersion);
  CHECK(first_fault("4183 00000000 00000000 00000001 00000000") == fault::kInvalidVersion);
  CHECK(first_fault("41c3 00000000 00000000 00000001 00000000") == fault::kInvalidVersion);
  CHECK(first_fault("4143 00000000 00000004 00000001 00000000") == fault::kInvalidQueueNumber);
  CHECK(first_fault("4143 00000000 ffffffff 00000001 00000000") == fault::kInvalidQueueNumber);
  CHECK(first_fault("4143 00000000 80000000 00000001 00000000") == fault::kInvalidQueueNumber);
  CHECK(first_fault("4143 00000000 00000000 00000000 00000000") == fault::kInvalidMsn);
  CHECK(first_fault("4143 00000000 00000000 00000002 00000000") == fault::kInvalidMsn);
  CHECK(first_fault("4143 00000000 00000000 ffffffff 00000000") == fault::kInvalidMsn);
  CHECK(first_fault("4143 00000000 00000000 00000001 00000001") == fault::kInvalidOffset);
  CHECK(first_fault("4143 00000000 00000000 00000001 80000000") == fault::kInvalidOffset);
}

TEST_CASE("the RDMAP version of a tagged segment is checked") {
  CHECK(first_fault("c140 00000000 0000000000000000") == kNoFault);
  CHECK(first_fault("c100 00000000 0000000000000000") == fault::kInvalidVersion);
  CHECK(first_fault("c180 00000000 0000000000000000") == fault::kInvalidVersion);
}

TEST_CASE("unknown opcodes are unexpected in both models") {
  for (const char* control : {"4c", "4d", "4e", "4f"}) {
    CHECK(first_fault("41" + std::string(control) + "00000000 00000000 00000001 00000000") ==
          fault::kUnexpectedOpcode);
    CHECK(first_fault("c1" + std::string(control) + "00000000 0000000000000000") ==
          fault::kUnexpectedOpcode);
  }
}

TEST_CASE("an opcode in the other model is unexpected") {
  for (uint8_t value = 0; value < 12; ++value) {
    CAPTURE(+value);
    StreamReceiver receiver;
    std::vector<std::byte> bytes(18 + 60);
    ddp::encode({.tagged = !find_opcode(value)->tagged,
                 .last = true,
                 .ulp_control = static_cast<uint8_t>(0x40 | value),
                 .queue_number = find_opcode(value)->queue_number,
                 .msn = 1},
                bytes);
    CHECK(receiver.accept(bytes).fault == fault::kUnexpectedOpcode);
  }
}

TEST_CASE("each untagged opcode has its own queue and no other") {
  for (uint8_t value = 0; value < 12; ++value) {
    const OpcodeInfo& info = *find_opcode(value);
    if (info.tagged) continue;
    for (uint32_t queue = 0; queue < 6; ++queue) {
      CAPTURE(+value, queue);
      StreamReceiver receiver;
      std::vector<std::byte> bytes(18 + right_length(info.opcode));
      ddp::encode({.last = true,
                   .ulp_control = control_octet(info.opcode),
                   .queue_number = queue,
                   .msn = 1},
                  bytes);
      CHECK(receiver.accept(bytes).fault ==
            (queue == info.queue_number ? kNoFault : Fault(fault::kInvalidQueueNumber)));
    }
  }
}

TEST_CASE("reserved bits and reserved words are not looked at") {
  CHECK(first_fault("7d73 ffffffff 00000000 00000001 00000000") == kNoFault);
  CHECK(first_fault("fd70 00000000 0000000000000000") == kNoFault);
  CHECK(first_fault("7d71 ffffffff 00000001 00000001 00000000" + body_of(28)) == kNoFault);
  CHECK(first_fault("7d77 ffffffff 00000002 00000001 00000000 0005ffff") == kNoFault);
}

TEST_CASE("of two faults of a header the first in order is told") {
  CHECK(first_fault("4203 00000000 00000004 00000000 00000001") == fault::kUntaggedInvalidVersion);
  CHECK(first_fault("4103 00000000 00000004 00000000 00000001") == fault::kInvalidQueueNumber);
  CHECK(first_fault("410f 00000000 00000001 00000000 00000001") == fault::kInvalidVersion);
  CHECK(first_fault("414f 00000000 00000001 00000000 00000001") == fault::kUnexpectedOpcode);
  CHECK(first_fault("4143 00000000 00000001 00000000 00000001") == fault::kInvalidQueueNumber);
  CHECK(first_fault("4143 00000000 00000000 00000000 00000001") == fault::kInvalidMsn);
  CHECK(first_fault("4148 00000000 00000000 00000001 00000001") == fault::kInvalidOffset);
  CHECK(first_fault("4148 00000000 00000000 00000001 00000000") == fault::kUnspecified);
}

TEST_CASE("the fields of a segment come out as they were written") {
  StreamReceiver receiver;
  const auto send = hex("4144 11223344 00000000 00000001 00000000 aabb");
  const auto sent = receiver.accept(send);
  REQUIRE(sent.fault == kNoFault);
  CHECK(sent.segment.opcode == Opcode::send_invalidate);
  CHECK(sent.segment.last);
  CHECK(sent.segment.invalidate_stag == 0x11223344);
  CHECK(sent.segment.msn == 1);
  CHECK(copy(sent.segment.payload) == hex("aabb"));

  const auto write = hex("8140 55667788 0102030405060708 cc");
  const auto written = receiver.accept(write);
  REQUIRE(written.fault == kNoFault);
  CHECK(written.segment.opcode == Opcode::rdma_write);
  CHECK_FALSE(written.segment.last);
  CHECK(written.segment.stag == 0x55667788);
  CHECK(written.segment.tagged_offset == 0x0102030405060708);
  CHECK(copy(written.segment.payload) == hex("cc"));
}

TEST_CASE("the reserved word of a Send without invalidate names no STag") {
  StreamReceiver receiver;
  const auto send = hex("4143 11223344 00000000 00000001 00000000");
  CHECK(receiver.accept(send).segment.invalidate_stag == 0);
}

TEST_CASE("MSNs start at 1 and count messages, not segments") {
  StreamReceiver receiver;
  CHECK(fault_of(receiver, {.msn = 1}, 5) == kNoFault);
  CHECK(fault_of(receiver, {.last = false, .msn = 2}, 10) == kNoFault);
  CHECK(fault_of(receiver, {.last = false, .msn = 2, .message_offset = 10}, 10) == kNoFault);
  CHECK(fault_of(receiver, {.msn = 2, .message_offset = 20}, 1) == kNoFault);
  CHECK(fault_of(receiver, {.msn = 3}) == kNoFault);
  CHECK(fault_of(receiver, {.msn = 3}) == fault::kInvalidMsn);
}

TEST_CASE("each queue counts its own messages") {
  StreamReceiver receiver;
  for (uint32_t msn = 1; msn <= 3; ++msn) {
    CHECK(fault_of(receiver, whole(Opcode::send, msn)) == kNoFault);
  }
  CHECK(fault_of(receiver, whole(Opcode::read_request, 1), 28) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::atomic_request, 2), 52) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::read_request, 3), 28) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::atomic_response, 1), 12) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::atomic_response, 2), 12) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::immediate, 4), 8) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::send, 5)) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::terminate, 1), 4) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::read_request, 5), 28) == fault::kInvalidMsn);
}

TEST_CASE("inside a Send neither the MSN may change nor the MO jump nor the opcode change") {
  const auto after_first = [](const StreamSegment& second, size_t payload = 4) {
    StreamReceiver receiver;
    CHECK(fault_of(receiver, {.last = false, .msn = 1}, 10) == kNoFault);
    CHECK_FALSE(receiver.at_send_start());
    CHECK_FALSE(receiver.at_boundary());
    return fault_of(receiver, second, payload);
  };
  CHECK(after_first({.msn = 1, .message_offset = 10}) == kNoFault);
  CHECK(after_first({.msn = 2, .message_offset = 10}) == fault::kInvalidMsn);
  CHECK(after_first({.msn = 2, .message_offset = 0}) == fault::kInvalidMsn);
  CHECK(after_first({.msn = 1, .message_offset = 0}) == fault::kInvalidOffset);
  CHECK(after_first({.msn = 1, .message_offset = 9}) == fault::kInvalidOffset);
  CHECK(after_first({.msn = 1, .message_offset = 11}) == fault::kInvalidOffset);
  for (const Opcode other : {Opcode::send_solicited, Opcode::send_invalidate, Opcode::immediate}) {
    CHECK(after_first({.opcode = other, .msn = 1, .message_offset = 10}, 8) ==
          fault::kUnexpectedOpcode);
  }
}

TEST_CASE("the next message may have another opcode") {
  StreamReceiver receiver;
  uint32_t msn = 0;
  for (const Opcode opcode : {Opcode::send_solicited, Opcode::send, Opcode::send_invalidate,
                              Opcode::send_solicited_invalidate, Opcode::immediate_solicited,
                              Opcode::immediate, Opcode::send}) {
    CHECK(fault_of(receiver, whole(opcode, ++msn), right_length(opcode)) == kNoFault);
    CHECK(receiver.at_boundary());
  }
}

TEST_CASE("a message may end with a segment of no bytes") {
  StreamReceiver receiver;
  CHECK(fault_of(receiver, {.last = false, .msn = 1}, 10) == kNoFault);
  CHECK(fault_of(receiver, {.msn = 1, .message_offset = 10}) == kNoFault);
  CHECK(receiver.at_send_start());
  CHECK(fault_of(receiver, {.opcode = Opcode::rdma_write, .last = false}, 10) == kNoFault);
  CHECK_FALSE(receiver.at_boundary());
  CHECK(receiver.at_send_start());
  CHECK(fault_of(receiver, {.opcode = Opcode::rdma_write}) == kNoFault);
  CHECK(receiver.at_boundary());
}

TEST_CASE("messages of one segment have their length and nothing else") {
  for (const Opcode opcode : {Opcode::read_request, Opcode::immediate, Opcode::immediate_solicited,
                              Opcode::atomic_request, Opcode::atomic_response}) {
    const size_t right = info_of(opcode).body_bytes;
    for (size_t length = 0; length < right + 10; ++length) {
      CAPTURE(info_of(opcode).name, length);
      StreamReceiver receiver;
      const Fault expected = length < right   ? Fault(fault::kUnspecified)
                             : length > right ? Fault(fault::kMessageTooLong)
                                              : kNoFault;
      CHECK(fault_of(receiver, whole(opcode), length) == expected);
    }
    StreamReceiver receiver;
    StreamSegment more = whole(opcode);
    more.last = false;
    CHECK(fault_of(receiver, more, right) == fault::kUnspecified);
    CHECK(fault_of(receiver, more, right + 1) == fault::kMessageTooLong);
    more.message_offset = 1;
    CHECK(fault_of(receiver, more, right) == fault::kInvalidOffset);
  }
}

TEST_CASE("a tagged message is not cut by another tagged one") {
  const auto after_first = [](Opcode first, Opcode second) {
    StreamReceiver receiver;
    CHECK(fault_of(receiver, {.opcode = first, .last = false}, 10) == kNoFault);
    return fault_of(receiver, {.opcode = second}, 10);
  };
  CHECK(after_first(Opcode::rdma_write, Opcode::rdma_write) == kNoFault);
  CHECK(after_first(Opcode::read_response, Opcode::read_response) == kNoFault);
  CHECK(after_first(Opcode::rdma_write, Opcode::read_response) == fault::kUnexpectedOpcode);
  CHECK(after_first(Opcode::read_response, Opcode::rdma_write) == fault::kUnexpectedOpcode);
  StreamReceiver receiver;
  CHECK(fault_of(receiver, whole(Opcode::rdma_write), 10) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::read_response), 10) == kNoFault);
}

TEST_CASE("tagged and untagged messages may be interleaved, and a Terminate gets through") {
  StreamReceiver receiver;
  CHECK(fault_of(receiver, {.last = false, .msn = 1}, 10) == kNoFault);
  CHECK(fault_of(receiver, {.opcode = Opcode::rdma_write, .last = false}, 10) == kNoFault);
  CHECK(fault_of(receiver, {.last = false, .msn = 1, .message_offset = 10}, 5) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::read_request), 28) == kNoFault);
  CHECK(fault_of(receiver, {.opcode = Opcode::rdma_write}, 10) == kNoFault);
  CHECK(fault_of(receiver, {.msn = 1, .message_offset = 15}, 5) == kNoFault);
  CHECK(receiver.at_boundary());
  CHECK(fault_of(receiver, {.last = false, .msn = 2}, 10) == kNoFault);
  CHECK(fault_of(receiver, whole(Opcode::terminate), 4) == kNoFault);
}

TEST_CASE("a stream message longer than the limit is a fault") {
  StreamReceiver receiver;
  const size_t piece = 65535 - 18;
  uint64_t offset = 0;
  std::vector<std::byte> bytes(18 + piece);
  for (; offset + piece <= kMaxMessage; offset += piece) {
    encode_header({.last = false, .msn = 1, .message_offset = static_cast<uint32_t>(offset)},
                  bytes);
    if (receiver.accept(bytes).fault) FAIL(offset);
  }
  const auto rest = static_cast<size_t>(kMaxMessage - offset);
  const auto at = static_cast<uint32_t>(offset);
  StreamReceiver exact = receiver;
  CHECK(fault_of(exact, {.msn = 1, .message_offset = at}, rest) == kNoFault);
  CHECK(fault_of(receiver, {.msn = 1, .message_offset = at}, rest + 1) == fault::kMessageTooLong);
}

TEST_CASE("streams do not share their MSNs") {
  StreamReceiver first;
  StreamReceiver second;
  CHECK(fault_of(first, whole(Opcode::send, 1)) == kNoFault);
  CHECK(fault_of(second, whole(Opcode::send, 1)) == kNoFault);
  CHECK(fault_of(first, whole(Opcode::send, 2)) == kNoFault);
}

TEST_CASE("segments are checked without the heap") {
  const auto good = hex("4143 00000000 00000000 00000001 00000000 aabb");
  const auto bad = hex("4143 00000000 00000000 00000007 00000000");
  StreamReceiver receiver;
  const size_t before = allocations();
  const bool as_expected = !receiver.accept(good).fault && receiver.accept(bad).fault;
  CHECK(allocations() == before);
  CHECK(as_expected);
}
