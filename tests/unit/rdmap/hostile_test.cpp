// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/random.h"
#include "diwarp/types.h"
#include "rdmap/stream_receiver.h"
#include "support/catch.h"
#include "unit/rdmap/faults.h"

using namespace diwarp;
using namespace diwarp::rdmap;
using namespace diwarp::test;

namespace {

/// The rules that hold for every ULPDU, however bad: a fault has a name, and a segment keeps the
/// promises of its type.
void check_result(const StreamReceiver::Result& result, ConstBytes ulpdu) {
  if (result.fault) {
    const std::string words = to_string(*result.fault);
    if (words.find("unknown") != std::string::npos) FAIL(words);
    std::array<std::byte, kMaxTerminateUlpdu> out;
    const size_t length = encode_terminate(*result.fault, ulpdu, out);
    StreamReceiver peer;
    const auto received = peer.accept(ConstBytes(out).first(length));
    REQUIRE_FALSE(received.fault);
    const auto terminate = parse_terminate(received.segment.payload);
    REQUIRE(terminate);
    REQUIRE(terminate->code == *result.fault);
    return;
  }
  const StreamSegment& segment = result.segment;
  const OpcodeInfo& info = info_of(segment.opcode);
  REQUIRE(segment.payload.size() + ddp::header_bytes(info.tagged) == ulpdu.size());
  if (info.body_bytes != 0) REQUIRE(segment.payload.size() == info.body_bytes);
  if (!info.tagged) {
    REQUIRE(uint64_t{segment.message_offset} + segment.payload.size() <= kMaxMessage);
  }
  if (segment.opcode == Opcode::terminate) parse_terminate(segment.payload);
  if (segment.opcode == Opcode::atomic_request) {
    apply(decode_atomic_request(segment.payload), 1);
  }
}

/// A sender of right messages: any opcode, in one or several segments.
class Sender {
 public:
  explicit Sender(uint64_t seed) : random_(seed) {}

  std::vector<std::byte> next() {
    if (left_ == 0) begin();
    const OpcodeInfo& info = info_of(segment_.opcode);
    const size_t piece = info.body_bytes != 0 ? left_ : std::min(left_, random_.below(200) + 1);
    left_ -= piece;
    segment_.last = left_ == 0;
    std::vector<std::byte> out(18 + piece);
    const size_t header = encode_header(segment_, out);
    out.resize(header + piece);
    segment_.message_offset += static_cast<uint32_t>(piece);
    segment_.tagged_offset += piece;
    if (segment_.last && !info.tagged) ++msn_[info.queue_number];
    return out;
  }

 private:
  void begin() {
    do {
      segment_.opcode = static_cast<Opcode>(random_.below(12));
    } while (segment_.opcode == Opcode::terminate);
    const OpcodeInfo& info = info_of(segment_.opcode);
    left_ = info.body_bytes != 0 ? info.body_bytes : random_.below(1000) + 1;
    segment_.msn = info.tagged ? 0 : msn_[info.queue_number];
    segment_.message_offset = 0;
    segment_.tagged_offset = random_.next();
  }

  Random random_;
  StreamSegment segment_;
  size_t left_ = 0;
  std::array<uint32_t, kQueues> msn_{1, 1, 1, 1};
};

}  // namespace

TEST_CASE("any sequence of right messages is accepted") {
  Sender sender(42);
  StreamReceiver receiver;
  for (int step = 0; step < 20000; ++step) {
    const auto ulpdu = sender.next();
    const auto result = receiver.accept(ulpdu);
    if (result.fault) FAIL(step << ": " << to_string(*result.fault));
    check_result(result, ulpdu);
  }
}

TEST_CASE("random ULPDUs are checked with a code each") {
  Random random(5041);
  std::array<std::byte, 96> buffer;
  int accepted = 0;
  for (int round = 0; round < 300000; ++round) {
    const Bytes ulpdu = Bytes(buffer).first(random.below(buffer.size() + 1));
    for (std::byte& byte : ulpdu) byte = static_cast<std::byte>(random.next());
    if (ulpdu.size() >= 2 && random.chance(0.8)) {  // versions that are right
      ulpdu[0] = (ulpdu[0] & std::byte{0xFC}) | std::byte{1};
      ulpdu[1] = (ulpdu[1] & std::byte{0x3F}) | std::byte{0x40};
    }
    StreamReceiver receiver;
    const auto result = receiver.accept(ulpdu);
    accepted += result.fault ? 0 : 1;
    check_result(result, ulpdu);
  }
  CHECK(accepted > 1000);
}

TEST_CASE("right messages with flipped bits are checked with a code each") {
  Random random(5040);
  int faults = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Sender sender(seed);
    StreamReceiver receiver;
    for (int step = 0; step < 200; ++step) {
      auto ulpdu = sender.next();
      if (random.chance(0.05)) {
        const size_t bit = random.below(8 * std::min<size_t>(ulpdu.size(), 18));
        ulpdu[bit / 8] ^= std::byte{0x80} >> (bit % 8);
      }
      if (random.chance(0.01)) ulpdu.resize(random.below(ulpdu.size() + 1));
      const auto result = receiver.accept(ulpdu);
      check_result(result, ulpdu);
      if (!result.fault) continue;
      ++faults;
      break;
    }
  }
  CHECK(faults > 100);
}

TEST_CASE("random Terminate payloads are read or refused, never believed beyond their end") {
  Random random(48);
  std::array<std::byte, 90> buffer;
  int read = 0;
  for (int round = 0; round < 300000; ++round) {
    const Bytes payload = Bytes(buffer).first(random.below(buffer.size() + 1));
    for (std::byte& byte : payload) byte = static_cast<std::byte>(random.next());
    const auto terminate = parse_terminate(payload);
    if (!terminate) continue;
    ++read;
    const size_t carried = terminate->ddp_header.size() + terminate->rdmap_header.size();
    if (carried != 0 && carried + 6 > payload.size()) FAIL(round);
    to_string(terminate->code);
  }
  CHECK(read > 1000);
}
