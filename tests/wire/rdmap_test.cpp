// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "rdmap/stream_receiver.h"
#include "rdmap/terminate.h"
#include "support/catch.h"
#include "wire/golden_rdmap.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

std::vector<std::byte> encoded(const StreamSegment& segment) {
  std::vector<std::byte> out(18 + segment.payload.size());
  out.resize(encode_header(segment, out));
  out.insert(out.end(), segment.payload.begin(), segment.payload.end());
  return out;
}

template <typename Body>
std::vector<std::byte> encoded(StreamSegment segment, const Body& body) {
  std::array<std::byte, kAtomicRequestBytes> bytes{};
  const size_t length = encode_body(body, bytes);
  segment.payload = ConstBytes(bytes).first(length);
  return encoded(segment);
}

/// The segment in a ULPDU that is right but for its MSN, which says how many came before.
StreamSegment received(ConstBytes ulpdu) {
  StreamReceiver receiver;
  const auto header = ddp::decode(ulpdu);
  REQUIRE(header);
  const size_t queue = header->queue_number;
  for (uint32_t msn = 1; !header->tagged && msn < header->msn; ++msn) {
    const Opcode filler = queue == kSendQueue ? Opcode::send : Opcode::read_request;
    std::array<std::byte, kReadRequestBytes> body{};
    const StreamSegment before{
        .opcode = filler, .msn = msn, .payload = Bytes(body).first(info_of(filler).body_bytes)};
    REQUIRE_FALSE(receiver.accept(encoded(before)).fault);
  }
  const auto result = receiver.accept(ulpdu);
  REQUIRE_FALSE(result.fault);
  return result.segment;
}

std::vector<std::byte> terminate(const TerminateCode& code, const std::vector<std::byte>& cause) {
  std::vector<std::byte> out(kMaxTerminateUlpdu);
  out.resize(encode_terminate(code, cause, out));
  return out;
}

}  // namespace

TEST_CASE("tagged messages are laid out as RFC 5040 says") {
  const auto efgh = text("efgh");
  CHECK(encoded({.opcode = Opcode::rdma_write,
                 .stag = 0x11223344,
                 .tagged_offset = 0x1004,
                 .payload = efgh}) == golden::ulpdu_write());
  const auto ab = text("ab");
  CHECK(encoded({.opcode = Opcode::read_response,
                 .last = false,
                 .stag = 0xA0A1A2A3,
                 .tagged_offset = 0xB0B1B2B3B4B5B6B7,
                 .payload = ab}) == golden::ulpdu_read_response());
}

TEST_CASE("a Read Request is laid out as RFC 5040 section 4.4 says and read back") {
  const ReadRequest request{.sink_stag = 0xA0A1A2A3,
                            .sink_offset = 0xB0B1B2B3B4B5B6B7,
                            .length = 0x00010002,
                            .source_stag = 0xC0C1C2C3,
                            .source_offset = 0xD0D1D2D3D4D5D6D7};
  const auto golden = golden::ulpdu_read_request();
  CHECK(encoded({.opcode = Opcode::read_request, .msn = 7}, request) == golden);
  const StreamSegment segment = received(golden);
  CHECK(segment.opcode == Opcode::read_request);
  const ReadRequest read = decode_read_request(segment.payload);
  CHECK(read.sink_stag == request.sink_stag);
  CHECK(read.sink_offset == request.sink_offset);
  CHECK(read.length == request.length);
  CHECK(read.source_stag == request.source_stag);
  CHECK(read.source_offset == request.source_offset);
}

TEST_CASE("Sends with Invalidate carry the STag in the header") {
  const auto x = text("x");
  CHECK(encoded({.opcode = Opcode::send_invalidate,
                 .invalidate_stag = 0x01020304,
                 .msn = 2,
                 .payload = x}) == golden::ulpdu_send_invalidate());
  const auto y = text("y");
  CHECK(encoded({.opcode = Opcode::send_solicited_invalidate,
                 .last = false,
                 .invalidate_stag = 0x01020304,
                 .msn = 3,
                 .payload = y}) == golden::ulpdu_send_solicited_invalidate());
  CHECK(received(golden::ulpdu_send_invalidate()).invalidate_stag == 0x01020304);
}

TEST_CASE("Immediate Data is laid out as RFC 7306 section 6 says and read back") {
  std::array<std::byte, kImmediateBytes> body{};
  CHECK(encode_immediate(0x0123456789ABCDEF, body) == 8);
  const auto golden = golden::ulpdu_immediate();
  CHECK(encoded({.opcode = Opcode::immediate, .msn = 5, .payload = body}) == golden);
  CHECK(decode_immediate(received(golden).payload) == 0x0123456789ABCDEF);
}

TEST_CASE("a FetchAdd is laid out as RFC 7306 section 5.2.1 says and read back") {
  AtomicRequest request = make_atomic_request(AtomicOperation::fetch_add,
                                              {.operand = 3, .add_mask = 0x8000000080000000});
  request.request_id = 42;
  request.stag = 0x11223344;
  request.offset = 0x2008;
  const auto golden = golden::ulpdu_fetch_add();
  CHECK(encoded({.opcode = Opcode::atomic_request, .msn = 1}, request) == golden);
  const AtomicRequest read = decode_atomic_request(received(golden).payload);
  CHECK(read.operation_code == 0);
  CHECK(read.request_id == 42);
  CHECK(read.stag == 0x11223344);
  CHECK(read.offset == 0x2008);
  CHECK(read.operand == 3);
  CHECK(read.mask == 0x8000000080000000);
}

TEST_CASE("a CmpSwap is laid out as RFC 7306 section 5.2.1 says and read back") {
  AtomicRequest request = make_atomic_request(
      AtomicOperation::compare_swap, {.operand = 0xAA, .compare = 0xBB, .swap_mask = 0xFF});
  request.request_id = 43;
  request.stag = 0x11223344;
  request.offset = 0x2010;
  const auto golden = golden::ulpdu_compare_swap();
  CHECK(encoded({.opcode = Opcode::atomic_request, .msn = 2}, request) == golden);
  const AtomicRequest read = decode_atomic_request(received(golden).payload);
  CHECK(read.operation_code == 2);
  CHECK(read.operand == 0xAA);
  CHECK(read.mask == 0xFF);
  CHECK(read.compare == 0xBB);
  CHECK(read.compare_mask == ~uint64_t{0});
}

TEST_CASE("reserved bits beside an atomic operation's code are sent zero and not looked at") {
  auto golden = golden::ulpdu_compare_swap();
  for (size_t i = 18; i < 21; ++i) golden[i] = std::byte{0xFF};
  golden[21] |= std::byte{0xF0};
  CHECK(decode_atomic_request(received(golden).payload).operation_code == 2);
}

TEST_CASE("an Atomic Response is laid out as RFC 7306 section 5.2.2 says and read back") {
  const auto golden = golden::ulpdu_atomic_response();
  const AtomicResponse response{.request_id = 42, .value = 0xFEDCBA9876543210};
  CHECK(encoded({.opcode = Opcode::atomic_response, .msn = 1}, response) == golden);
  const AtomicResponse read = decode_atomic_response(received(golden).payload);
  CHECK(read.request_id == 42);
  CHECK(read.value == 0xFEDCBA9876543210);
}

TEST_CASE("Terminates are laid out as RFC 5040 section 4.8 says") {
  CHECK(terminate(fault::kBaseOrBounds, golden::ulpdu_read_request()) ==
        golden::ulpdu_terminate_read());
  CHECK(terminate(fault::kTaggedInvalidStag, golden::ulpdu_write()) ==
        golden::ulpdu_terminate_write());
  CHECK(terminate(fault::kBadCrc, golden::ulpdu_write()) == golden::ulpdu_terminate_crc());
}

TEST_CASE("Terminates laid out as RFC 5040 section 4.8 says are read") {
  const auto golden = golden::ulpdu_terminate_read();
  const auto read = parse_terminate(received(golden).payload);
  REQUIRE(read);
  CHECK(read->code == fault::kBaseOrBounds);
  const auto cause = golden::ulpdu_read_request();
  CHECK(copy(read->ddp_header) == copy(ConstBytes(cause).first(18)));
  CHECK(copy(read->rdmap_header) == copy(ConstBytes(cause).subspan(18)));
}
