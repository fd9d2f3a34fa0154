// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/fpdu_encoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "support/bytes.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

using rdmap::Opcode;
using test::hex;
using Octets = std::vector<std::byte>;

// --- FPDUs as RFC 5044 lays them out.

constexpr size_t kSpacing = 512;  // of markers (section 4.3)

/// RFC 3720 section 12.1, bit by bit.
uint32_t crc32c_of(const Octets& bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const std::byte one : bytes) {
    crc ^= std::to_integer<uint32_t>(one);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
  }
  return ~crc;
}

/// Section 4: length, ULPDU, zeros up to a multiple of four, CRC32C of all that with its low byte
/// first, or a zero in its place. With markers: section 4.3.
class Layout {
 public:
  explicit Layout(bool crc, bool markers = false, uint64_t position = 0)
      : crc_(crc), markers_(markers), position_(position) {}

  Octets fpdu(const Octets& ulpdu) {
    put({std::byte(ulpdu.size() >> 8), std::byte(ulpdu.size() & 0xFF)});
    put(ulpdu);
    put(Octets((4 - (2 + ulpdu.size()) % 4) % 4));
    mark_if_due();  // in front of the CRC, which covers it
    const uint32_t sum = crc_ ? crc32c_of(out_) : 0;
    for (int shift = 0; shift < 32; shift += 8) out_.push_back(std::byte(sum >> shift & 0xFF));
    return out_;
  }

 private:
  void put(const Octets& bytes) {
    for (const std::byte one : bytes) {
      mark_if_due();
      out_.push_back(one);
      if (begin_ == kNowhere) begin_ = position_ + out_.size() - 1;
    }
  }
  /// Two octets of zero, then how far back the length field begins: 0 where that follows.
  void mark_if_due() {
    const uint64_t here = position_ + out_.size();
    if (!markers_ || here % kSpacing != 0) return;
    const uint64_t back = begin_ == kNowhere ? 0 : here - begin_;
    for (const uint64_t octet : {uint64_t{0}, uint64_t{0}, back >> 8, back & 0xFF})
      out_.push_back(std::byte(octet));
  }

  static constexpr uint64_t kNowhere = ~uint64_t{0};

  const bool crc_;
  const bool markers_;
  const uint64_t position_;
  uint64_t begin_ = kNowhere;  // of the length field, in the stream
  Octets out_;
};

Octets operator+(Octets a, const Octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A stream of which nothing but its segment size is asked.
class Segments final : public llp::Stream {
 public:
  llp::IoResult send(std::span<const ConstBytes>) override { return {}; }
  llp::IoResult receive(Bytes) override { return {}; }
  void shutdown_send() override {}
  void abort() override {}
  size_t maximum_segment() const override { return bytes; }
  Address local_address() const override { return {}; }
  Address peer_address() const override { return {}; }

  size_t bytes = 1460;
};

RcMessage send_of(uint64_t length, uint32_t msn = 7) {
  return {.header = {.opcode = Opcode::send, .msn = msn}, .length = length};
}
RcMessage write_of(uint64_t length) {
  return {.header = {.opcode = Opcode::rdma_write, .stag = 0x11223344, .tagged_offset = 0x1000},
          .length = length};
}

struct Fixture {
  explicit Fixture(const mpa::NegotiatedParameters& parameters = {}, uint32_t max_fpdu = 0) {
    encoder.start(parameters, max_fpdu);
    encoder.refresh_segment(stream, kNow);
  }

  /// Bytes of payload that the message's first FPDU carries.
  size_t payload_of(const RcMessage& message) {
    encoder.cut(message, 0, fpdu);
    return fpdu.segment.length;
  }
  /// The FPDU of the message from `offset` on, with this payload, which is given in two pieces.
  Octets encoded(const RcMessage& message, uint64_t offset, const Octets& payload) {
    encoder.cut(message, offset, fpdu);
    REQUIRE(fpdu.segment.length == payload.size());
    const ConstBytes all(payload);
    const size_t half = payload.size() / 2;
    const std::array<ConstBytes, 2> pieces{all.first(half), all.subspan(half)};
    if (encoder.markers()) {
      Octets out(2 * kSpacing + 2 * payload.size());
      encoder.encode_marked(fpdu, message, pieces, out);
      out.resize(fpdu.whole);
      return out;
    }
    encoder.encode(fpdu, message, pieces, true);
    const ConstBytes trailer = ConstBytes(fpdu.trailer).first(fpdu.trailer_bytes);
    const Octets whole = test::copy(fpdu.head_view()) + payload + test::copy(trailer);
    CHECK(fpdu.whole == whole.size());
    return whole;
  }

  Segments stream;
  FpduEncoder encoder;
  RcFpdu fpdu;
};

/// RFC 5041 figure 5 and RFC 5040 section 4.1: untagged, last; Send; no STag; queue 0; MSN 7; MO 0.
Octets send_header() { return hex("41 43 00000000 00000000 00000007 00000000"); }

Octets letters(size_t count) {
  Octets all(count);
  std::ranges::generate(all, [n = 0]() mutable { return std::byte('a' + n++ % 26); });
  return all;
}

}  // namespace

TEST_CASE(
    "fpdu encoder: the layout of this test is the one of RFC 3720's and RFC 5044's examples") {
  // RFC 3720 appendix B.4: 32 bytes of zeros.
  CHECK(crc32c_of(Octets(32)) == 0x8A9136AAu);
}

TEST_CASE("fpdu encoder: an FPDU is padded to four bytes, and its CRC covers the padding") {
  for (size_t length = 0; length < 8; ++length) {
    Fixture f;
    CHECK(f.encoded(send_of(length), 0, letters(length)) ==
          Layout(true).fpdu(send_header() + letters(length)));
  }
}

TEST_CASE("fpdu encoder: where no CRC was agreed on, a zero stands in its place") {
  Fixture f({.crc = false});
  CHECK(f.encoded(send_of(3), 0, letters(3)) ==
        hex("0015") + send_header() + letters(3) + hex("00 00000000"));
}

TEST_CASE("fpdu encoder: each segment tells its place, and the last one that it is the last") {
  Fixture f({}, 200);  // 200 - 6 bytes of ULPDU (RFC 5044 section 4.5)
  const RcMessage send = send_of(180);
  CHECK(f.encoded(send, 0, letters(176)) ==
        Layout(true).fpdu(hex("01 43 00000000 00000000 00000007 00000000") + letters(176)));
  CHECK(f.encoded(send, 176, letters(4)) ==
        Layout(true).fpdu(hex("41 43 00000000 00000000 00000007 000000b0") + letters(4)));
  // RFC 5041 figure 3: the tagged offset goes on from that of the first byte.
  const RcMessage write = write_of(182);
  CHECK(f.encoded(write, 0, letters(180)) ==
        Layout(true).fpdu(hex("81 40 11223344 0000000000001000") + letters(180)));
  CHECK(f.encoded(write, 180, letters(2)) ==
        Layout(true).fpdu(hex("c1 40 11223344 00000000000010b4") + letters(2)));
}

TEST_CASE("fpdu encoder: a body of the message's own follows the header") {
  Fixture f;
  RcMessage message{.header = {.opcode = Opcode::immediate, .msn = 2}};
  message.body_bytes = 8;
  std::ranges::copy(letters(8), message.body.begin());
  CHECK(f.encoded(message, 0, {}) ==
        Layout(true).fpdu(hex("41 48 00000000 00000000 00000002 00000000") + letters(8)));
}

TEST_CASE("fpdu encoder: an FPDU is what a TCP segment carries, or what was asked for") {
  CHECK(Fixture().payload_of(send_of(10'000)) == 1460 - 6 - 18);
  CHECK(Fixture().payload_of(write_of(10'000)) == 1460 - 6 - 14);
  CHECK(Fixture({}, 1000).payload_of(send_of(10'000)) == 1000 - 6 - 18);
  // A marker for each 512 bytes that begin (RFC 5044 section 4.5).
  CHECK(Fixture({.send_markers = true}).payload_of(send_of(10'000)) == 1460 - 6 - 3 * 4 - 18);
  CHECK(Fixture().payload_of(send_of(10)) == 10);
}

TEST_CASE("fpdu encoder: the stream is asked for its segment size again after a while") {
  Fixture f;
  f.stream.bytes = 536;
  f.encoder.refresh_segment(f.stream, kNow + kSegmentRefresh - 1ns);
  CHECK(f.payload_of(send_of(10'000)) == 1460 - 6 - 18);
  f.encoder.refresh_segment(f.stream, kNow + kSegmentRefresh);
  CHECK(f.payload_of(send_of(10'000)) == 536 - 6 - 18);
  f.stream.bytes = 1460;
  f.encoder.start({}, 0);
  f.encoder.refresh_segment(f.stream, kNow + kSegmentRefresh);  // another stream
  CHECK(f.payload_of(send_of(10'000)) == 1460 - 6 - 18);
}

TEST_CASE(
    "fpdu encoder: markers stand at every 512th byte of the stream, the first at its beginning") {
  Fixture f({.send_markers = true});
  Octets stream;
  // Ends of FPDUs fall onto, before and behind the places of markers.
  for (const size_t length :
       {0U, 3U, 100U, 333U, 1U, 458U, 500U, 1024U, 17U, 470U, 466U, 462U, 474U}) {
    const uint64_t before = stream.size();
    CHECK(f.encoder.position() == before);
    const Octets fpdu = f.encoded(send_of(length), 0, letters(length));
    CAPTURE(length, before);
    CHECK(fpdu == Layout(true, true, before).fpdu(send_header() + letters(length)));
    stream = stream + fpdu;
  }
  CHECK(f.encoder.position() == stream.size());
  for (size_t at = 0; at + 4 <= stream.size(); at += kSpacing)
    CHECK(std::ranges::equal(ConstBytes(stream).subspan(at, 2), hex("0000")));
}

TEST_CASE("fpdu encoder: the position counts whole FPDUs, and begins anew with a stream") {
  Fixture f;
  const size_t first = f.encoded(send_of(5), 0, letters(5)).size();
  const size_t second = f.encoded(write_of(0), 0, {}).size();
  CHECK(f.encoder.position() == first + second);
  f.encoder.start({}, 0);
  CHECK(f.encoder.position() == 0);
}

TEST_CASE("fpdu encoder: the last FPDU is appended as the stream's agreement has it") {
  const Octets ulpdu = send_header() + letters(5);
  const Octets before = letters(9);
  for (const bool crc : {false, true})
    for (const bool markers : {false, true}) {
      Fixture f({.crc = crc, .send_markers = markers});
      CAPTURE(crc, markers);
      // The marker is due in front of it, in it, and after it.
      for (const uint64_t position : {0U, 500U, 508U, 100U}) {
        Octets bytes = before;
        f.encoder.append_last(bytes, ulpdu, position);
        CHECK(bytes == before + Layout(crc, markers, position).fpdu(ulpdu));
      }
      CHECK(f.encoder.position() == 0);  // it is not among what is framed
    }
}
