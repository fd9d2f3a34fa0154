// SPDX-License-Identifier: Apache-2.0
#include "rdmap/terminate.h"

#include <array>
#include <set>

#include "rdmap/stream_receiver.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "unit/rdmap/faults.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

std::vector<std::byte> encoded(const TerminateCode& code, ConstBytes offending,
                               size_t segment_bytes = 0) {
  std::vector<std::byte> out(kMaxTerminateUlpdu);
  out.resize(encode_terminate(code, offending, out, segment_bytes));
  return out;
}

/// The bytes after the DDP header.
std::vector<std::byte> body(const TerminateCode& code, ConstBytes offending) {
  const auto whole = encoded(code, offending);
  return {whole.begin() + 18, whole.end()};
}

const auto kTagged = hex("8140 11223344 0102030405060708");
const auto kSend = hex("4144 aabbccdd 00000000 00000001 00000000");
const auto kReadRequest =
    hex("4141 00000000 00000001 00000003 00000000"
        "11223344 0000000000000010 00001000 55667788 0000000000000020");
const auto kAtomic =
    hex("414a 00000000 00000001 00000004 00000000"
        "00000002 00000009 11223344 0000000000000010 0000000000000001 ffffffffffffffff"
        "0000000000000002 ffffffffffffffff");

std::vector<std::byte> with_payload(std::vector<std::byte> header, size_t bytes) {
  header.resize(header.size() + bytes, std::byte{0xEE});
  return header;
}

std::string digits(ConstBytes bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte byte : bytes) {
    out += kDigits[std::to_integer<unsigned>(byte) >> 4];
    out += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return out;
}

constexpr TerminateCode kWithRdmapHeader[] = {
    fault::kInvalidStag,       fault::kBaseOrBounds,     fault::kAccessRights,
    fault::kStagNotAssociated, fault::kOffsetWrap,       fault::kStagNotInvalidated,
    fault::kInvalidVersion,    fault::kUnexpectedOpcode, fault::kStreamCatastrophic,
    fault::kUnspecified};
constexpr TerminateCode kWithDdpHeader[] = {
    fault::kTaggedInvalidStag, fault::kTaggedBaseOrBounds, fault::kTaggedNotAssociated,
    fault::kTaggedOffsetWrap,  fault::kInvalidQueueNumber, fault::kNoBuffer,
    fault::kInvalidMsn,        fault::kInvalidOffset,      fault::kMessageTooLong};
constexpr TerminateCode kWithoutHeaders[] = {fault::kLocalCatastrophic,
                                             fault::kDdpCatastrophic,
                                             fault::kTaggedInvalidVersion,
                                             fault::kUntaggedInvalidVersion,
                                             fault::kStreamLost,
                                             fault::kBadCrc,
                                             fault::kBadMarker,
                                             fault::kBadStartup,
                                             fault::kMpaCatastrophic,
                                             fault::kInsufficientIrd,
                                             fault::kNoMatchingReady};

}  // namespace

TEST_CASE("a fault in naming memory has RDMAP's code in a request, and DDP's in a tagged segment") {
  // RFC 5040 section 4.8, layer 0, error type 1.
  CHECK(remote_protection_fault(ddp::RegionFault::unknown_stag) == TerminateCode{0, 1, 0});
  CHECK(remote_protection_fault(ddp::RegionFault::invalid) == TerminateCode{0, 1, 0});
  CHECK(remote_protection_fault(ddp::RegionFault::bounds) == TerminateCode{0, 1, 1});
  CHECK(remote_protection_fault(ddp::RegionFault::access) == TerminateCode{0, 1, 2});
  CHECK(remote_protection_fault(ddp::RegionFault::wrong_domain) == TerminateCode{0, 1, 3});
  CHECK(remote_protection_fault(ddp::RegionFault::wrong_queue_pair) == TerminateCode{0, 1, 3});
  CHECK(remote_protection_fault(ddp::RegionFault::wrap) == TerminateCode{0, 1, 4});
  // RFC 5041 section 7.2, error type 1; access rights are RDMAP's.
  CHECK(tagged_fault(ddp::RegionFault::unknown_stag) == TerminateCode{1, 1, 0});
  CHECK(tagged_fault(ddp::RegionFault::invalid) == TerminateCode{1, 1, 0});
  CHECK(tagged_fault(ddp::RegionFault::bounds) == TerminateCode{1, 1, 1});
  CHECK(tagged_fault(ddp::RegionFault::access) == TerminateCode{0, 1, 2});
  CHECK(tagged_fault(ddp::RegionFault::wrong_domain) == TerminateCode{1, 1, 2});
  CHECK(tagged_fault(ddp::RegionFault::wrong_queue_pair) == TerminateCode{1, 1, 2});
  CHECK(tagged_fault(ddp::RegionFault::wrap) == TerminateCode{1, 1, 3});
}

TEST_CASE("a Terminate is the first message of queue 2") {
  const auto whole = encoded(fault::kBadCrc, {});
  CHECK(copy(ConstBytes(whole).first(18)) == hex("4147 00000000 00000002 00000001 00000000"));
  StreamReceiver receiver;
  CHECK_FALSE(receiver.accept(whole).fault);
}

TEST_CASE("the control field has layer, type, code and no headers where there is no segment") {
  CHECK(body(fault::kBadCrc, {}) == hex("20 02 0000"));
  CHECK(body(fault::kNoBuffer, {}) == hex("12 02 0000"));
  CHECK(body(fault::kStagNotInvalidated, {}) == hex("01 09 0000"));
  CHECK(body(fault::kUnspecified, {}) == hex("02 ff 0000"));
}

TEST_CASE("a DDP error carries length and DDP header of the segment") {
  const auto write = with_payload(kTagged, 100);
  CHECK(body(fault::kTaggedBaseOrBounds, write) == hex("11 01 c000 0072" + digits(kTagged)));
  const auto send = with_payload(kSend, 10);
  CHECK(body(fault::kNoBuffer, send) == hex("12 02 c000 001c" + digits(kSend)));
}

TEST_CASE("a DDP error carries no RDMAP header, whatever the segment") {
  CHECK(body(fault::kInvalidMsn, kReadRequest) ==
        hex("12 03 c000 002e" + digits(ConstBytes(kReadRequest).first(18))));
}

TEST_CASE("a protection error of a request carries its RDMAP header, too") {
  CHECK(body(fault::kBaseOrBounds, kReadRequest) == hex("01 01 e000 002e" + digits(kReadRequest)));
  CHECK(body(fault::kAccessRights, kAtomic) == hex("01 02 e000 0046" + digits(kAtomic)));
}

TEST_CASE("a protection error of a Send carries its DDP header alone") {
  CHECK(body(fault::kStagNotInvalidated, with_payload(kSend, 52)) ==
        hex("01 09 c000 0046" + digits(kSend)));
}

TEST_CASE("which headers a Terminate carries depends on its error") {
  for (const TerminateCode& code : kWithRdmapHeader) {
    CAPTURE(code);
    CHECK(body(code, kReadRequest).size() == 4 + 2 + 46);
    CHECK(body(code, kTagged).size() == 4 + 2 + 14);
  }
  for (const TerminateCode& code : kWithDdpHeader) {
    CAPTURE(code);
    CHECK(body(code, kReadRequest).size() == 4 + 2 + 18);
    CHECK(body(code, kTagged).size() == 4 + 2 + 14);
  }
  for (const TerminateCode& code : kWithoutHeaders) {
    CAPTURE(code);
    CHECK(body(code, kReadRequest).size() == 4);
    CHECK(body(code, kTagged).size() == 4);
  }
}

TEST_CASE("a segment shorter than its headers is carried as far as its headers are whole") {
  for (size_t length = 0; length < kReadRequest.size(); ++length) {
    const size_t expected = length < 18 ? 4 : 4 + 2 + 18;
    CHECK(body(fault::kBaseOrBounds, ConstBytes(kReadRequest).first(length)).size() == expected);
  }
}

TEST_CASE("the segment's length may be told where only its beginning is there") {
  const auto whole = encoded(fault::kTaggedOffsetWrap, kTagged, 0x1234);
  CHECK(copy(ConstBytes(whole).subspan(18, 6)) == hex("11 03 c000 1234"));
}

TEST_CASE("the longest Terminate fits the room that is asked for") {
  CHECK(encoded(fault::kInvalidStag, kAtomic).size() == kMaxTerminateUlpdu);
}

TEST_CASE("a Terminate is read as it was written") {
  for (const auto& segment : {kTagged, kSend, kReadRequest, kAtomic}) {
    for (const auto& group :
         {std::vector(std::begin(kWithRdmapHeader), std::end(kWithRdmapHeader)),
          std::vector(std::begin(kWithDdpHeader), std::end(kWithDdpHeader)),
          std::vector(std::begin(kWithoutHeaders), std::end(kWithoutHeaders))}) {
      for (const TerminateCode& code : group) {
        const auto payload = body(code, segment);
        const auto terminate = parse_terminate(payload);
        REQUIRE(terminate);
        CHECK(terminate->code == code);
        const size_t carried = payload.size() == 4 ? 0 : payload.size() - 6;
        CHECK(terminate->ddp_header.size() + terminate->rdmap_header.size() == carried);
        auto headers = copy(terminate->ddp_header);
        const auto rest = copy(terminate->rdmap_header);
        headers.insert(headers.end(), rest.begin(), rest.end());
        CHECK(headers == copy(ConstBytes(segment).first(carried)));
      }
    }
  }
}

TEST_CASE("a Terminate that is shorter than it says is none") {
  const auto payload = body(fault::kBaseOrBounds, kReadRequest);
  for (size_t length = 0; length < payload.size(); ++length) {
    CHECK_FALSE(parse_terminate(ConstBytes(payload).first(length)));
  }
  const auto no_headers = body(fault::kBadCrc, {});
  for (size_t length = 0; length < 4; ++length) {
    CHECK_FALSE(parse_terminate(ConstBytes(no_headers).first(length)));
  }
}

TEST_CASE("a Terminate with bytes behind it, reserved bits or an unknown code is read") {
  const auto terminate = parse_terminate(hex("f7 e8 1fff 0000"));
  REQUIRE(terminate);
  CHECK(terminate->code == TerminateCode{15, 7, 0xE8});
  CHECK(terminate->ddp_header.empty());
}

TEST_CASE("a Terminate that announces an RDMAP header for a Send is read without one") {
  const auto payload = hex("01 09 e000 0012" + digits(kSend));
  const auto terminate = parse_terminate(payload);
  REQUIRE(terminate);
  CHECK(copy(terminate->ddp_header) == kSend);
  CHECK(terminate->rdmap_header.empty());
}

TEST_CASE("every code has words of its own within its layer and type") {
  std::set<std::string> seen;
  for (const auto& group : {std::vector(std::begin(kWithRdmapHeader), std::end(kWithRdmapHeader)),
                            std::vector(std::begin(kWithDdpHeader), std::end(kWithDdpHeader)),
                            std::vector(std::begin(kWithoutHeaders), std::end(kWithoutHeaders))}) {
    for (const TerminateCode& code : group) {
      const std::string words = to_string(code);
      CHECK(words.find("unknown") == std::string::npos);
      CHECK(seen.insert(words).second);
    }
  }
  CHECK(to_string(fault::kBaseOrBounds) == "remote protection error: base or bounds violation");
  CHECK(to_string(TerminateCode{0, 0, 55}) == to_string(fault::kLocalCatastrophic));
  CHECK(to_string(TerminateCode{1, 2, 99}) == "DDP untagged buffer error: unknown code 1/2/99");
  for (const TerminateCode& code : {TerminateCode{2, 1, 0}, {3, 0, 0}, {0, 3, 0}, {15, 15, 255}}) {
    CHECK(to_string(code).find("unknown error") == 0);
  }
}
