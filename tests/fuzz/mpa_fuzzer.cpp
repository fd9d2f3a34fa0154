// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>

#include "fuzz/input.h"
#include "fuzz/reference_fpdus.h"
#include "mpa/fpdu.h"
#include "mpa/negotiated_parameters.h"
#include "mpa/startup.h"
#include "rdmap/terminate.h"

/// MPA: start-up frames in all their prefixes, what two sides agree to, and the deframer over a
/// stream that comes in any pieces.

using namespace diwarp;
using namespace diwarp::fuzz;

namespace {

/// A copy that ends where its memory ends, so that reading one byte more is seen.
class Exact {
 public:
  explicit Exact(ConstBytes bytes) : memory_(new std::byte[bytes.size()]), size_(bytes.size()) {
    if (size_ != 0) std::memcpy(memory_.get(), bytes.data(), size_);
  }
  ConstBytes bytes() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t size_;
};

// --- Start-up.

Octets startup_bytes_of(Input& input, mpa::FrameKind kind) {
  Octets frame;
  const char* const key = kind == mpa::FrameKind::reply ? "MPA ID Rep Frame" : "MPA ID Req Frame";
  const uint8_t shape = input.u8();
  if ((shape & 1) == 0)
    for (size_t i = 0; i < 16; ++i) frame.push_back(static_cast<std::byte>(key[i]));
  if ((shape & 2) == 0) {
    append_be(frame, input.u8(), 1);
    append_be(frame, (shape & 4) != 0 ? input.u8() : input.u8() & 3u, 1);
    append_be(frame, (shape & 8) != 0 ? input.u16() : input.u16() % 520u, 2);
  }
  const Octets rest = input.rest();
  frame.insert(frame.end(), rest.begin(), rest.end());
  return frame;
}

mpa::MpaProposal proposal_of(Input& input) {
  const uint8_t bits = input.u8();
  return {.crc = (bits & 1) != 0,
          .markers = (bits & 2) != 0,
          .ord = static_cast<uint16_t>(input.u16() % (mpa::kMaxDepth + 1)),
          .ird = static_cast<uint16_t>(input.u16() % (mpa::kMaxDepth + 1)),
          .revision = static_cast<uint8_t>((bits & 4) != 0 ? 1 : 2),
          .peer_to_peer = (bits & 8) != 0};
}

bool same(const mpa::StartupFrame& a, const mpa::StartupFrame& b) {
  return a.kind == b.kind && a.markers == b.markers && a.crc == b.crc && a.reject == b.reject &&
         a.revision == b.revision && a.enhanced == b.enhanced &&
         std::equal(a.private_data.begin(), a.private_data.end(), b.private_data.begin(),
                    b.private_data.end());
}

/// A frame that diwarp makes can be read, and says what was meant.
void check_own(const mpa::StartupFrame& frame) {
  Octets bytes(mpa::startup_bytes(frame));
  require(mpa::encode(frame, bytes) == bytes.size(), "A start-up frame has another size");
  const mpa::ParsedStartup parsed = mpa::parse_startup(bytes, frame.kind);
  require(parsed.status == mpa::StartupStatus::ok, "An own start-up frame cannot be read");
  require(parsed.consumed == bytes.size(), "An own start-up frame is read in part");
  require(same(parsed.frame, frame), "An own start-up frame says something else");
}

/// Both sides understand the same by a request and its answer.
void check_negotiation(const mpa::StartupFrame& request, const mpa::MpaProposal& asked,
                       const mpa::MpaProposal& proposal) {
  const mpa::Answer answer = mpa::answer_request(request, proposal);
  check_own(answer.reply);
  const mpa::NegotiationResult seen = mpa::check_reply(answer.reply, asked);
  if (seen.fault != mpa::NegotiationFault::none)
    fail("An own reply is refused by the side that asked for it");
  const mpa::NegotiatedParameters& a = seen.parameters;
  const mpa::NegotiatedParameters& b = answer.parameters;
  require(a.crc == b.crc, "Two sides disagree about CRCs");
  require(a.send_markers == b.receive_markers && a.receive_markers == b.send_markers,
          "Two sides disagree about markers");
  require(a.revision == b.revision, "Two sides disagree about the revision");
  require(a.ready == b.ready, "Two sides disagree about the ready-to-receive message");
  if (!request.enhanced) return;  // without it no depths are exchanged
  require(a.ord <= b.ird && b.ord <= a.ird, "A side may send more Reads than the other answers");
}

void check_answers(const mpa::StartupFrame& frame, const mpa::MpaProposal& proposal) {
  check_own(frame);
  if (frame.kind == mpa::FrameKind::reply) {
    (void)mpa::check_reply(frame, proposal);
    return;
  }
  check_own(mpa::make_reject(frame, {}));
  if (mpa::check_request(frame) != mpa::NegotiationFault::none) return;
  check_own(mpa::answer_request(frame, proposal).reply);
}

/// Each prefix of a frame is incomplete, or gets the verdict that all longer ones get.
void fuzz_startup(Input& input) {
  const auto kind = input.flag() ? mpa::FrameKind::reply : mpa::FrameKind::request;
  const mpa::MpaProposal proposal = proposal_of(input);
  const Octets frame = startup_bytes_of(input, kind);
  auto before = mpa::StartupStatus::incomplete;
  for (size_t size = 0; size <= std::min<size_t>(frame.size(), 600); ++size) {
    const Exact prefix(ConstBytes(frame).first(size));
    const mpa::ParsedStartup parsed = mpa::parse_startup(prefix.bytes(), kind);
    if (before != mpa::StartupStatus::incomplete && parsed.status != before)
      fail("More bytes change the verdict on a start-up frame");
    if (parsed.status == mpa::StartupStatus::incomplete && size >= mpa::kMaxStartupBytes)
      fail("The longest start-up frame is incomplete");
    if (parsed.status == mpa::StartupStatus::ok) {
      require(parsed.consumed <= size, "A start-up frame is longer than its bytes");
      if (before != parsed.status) check_answers(parsed.frame, proposal);
    }
    before = parsed.status;
  }
}

void fuzz_negotiation(Input& input) {
  const mpa::MpaProposal asked = proposal_of(input);
  const mpa::MpaProposal proposal = proposal_of(input);
  const size_t limit = mpa::max_private_data(asked.revision);
  const Octets private_data = input.bytes(std::min<size_t>(input.u16(), limit));
  const mpa::StartupFrame request = mpa::make_request(asked, private_data);
  check_own(request);
  check_negotiation(request, asked, proposal);
}

// --- The stream of FPDUs.

Octets stream_of(Input& input, bool crc, bool markers) {
  ReferenceFramer framer(crc, markers);
  const uint8_t count = input.u8() % 12;
  for (uint8_t i = 0; i < count; ++i) {
    const uint8_t kind = input.u8();
    const size_t length = kind < 16 ? input.u16() : input.u8() * (kind & 15u);
    Octets ulpdu = input.bytes(kind < 128 ? 16 : length);
    ulpdu.resize(length);
    const uint16_t pointers = kind >= 250 ? input.u16() : uint16_t{0};
    framer.append(ulpdu, pointers, kind % 50 == 49);
  }
  const Octets rest = input.rest();  // what is no FPDU, or half of one
  framer.stream().insert(framer.stream().end(), rest.begin(), rest.end());
  return framer.stream();
}

mpa::DeframeStatus status_of(const ReferenceFpdu& fpdu) {
  if (!fpdu.whole) return mpa::DeframeStatus::incomplete;
  if (!fpdu.right_crc) return mpa::DeframeStatus::bad_crc;
  return fpdu.right_markers ? mpa::DeframeStatus::fpdu : mpa::DeframeStatus::bad_marker;
}

void compare(const mpa::Deframed& found, const ReferenceFpdu& expected, size_t begin) {
  require(found.status == status_of(expected), "The deframer's verdict is another");
  if (found.status != mpa::DeframeStatus::fpdu) return;
  require(found.consumed == expected.end - begin, "An FPDU takes another part of the stream");
  require(std::equal(found.ulpdu.begin(), found.ulpdu.end(), expected.ulpdu.begin(),
                     expected.ulpdu.end()),
          "A ULPDU has other bytes");
  (void)rdmap::parse_terminate(found.ulpdu);
}

/// Asks about ever more bytes from `begin` on, as the deframer wants them, and checks what it says
/// on the way. Returns what it says at last.
mpa::Deframed ask(mpa::Deframer& deframer, ConstBytes stream, size_t begin, size_t first) {
  size_t size = std::min(first, stream.size() - begin);
  for (;;) {
    const mpa::Deframed found = deframer.next(stream.subspan(begin, size));
    if (found.status != mpa::DeframeStatus::incomplete) return found;
    require(found.needed > size, "The deframer asks for what it has");
    if (const auto part = deframer.partial_fpdu(stream.subspan(begin, size)))
      require(part->ulpdu.size() + 2 <= size, "The beginning of an FPDU is longer than its bytes");
    if (found.needed > stream.size() - begin) return found;
    size = found.needed;
  }
}

void fuzz_stream(Input& input) {
  const bool crc = input.flag();
  const bool markers = input.flag();
  const size_t piece = input.u16();
  const Exact stream{stream_of(input, crc, markers)};
  mpa::Deframer deframer(crc, markers);
  ReferenceDeframer reference(stream.bytes(), crc, markers);
  size_t at = 0;
  for (;;) {
    const ReferenceFpdu expected = reference.next(at);
    const mpa::Deframed found = ask(deframer, stream.bytes(), at, piece);
    compare(found, expected, at);
    if (found.status != mpa::DeframeStatus::fpdu) return;
    deframer.step(found.consumed);
    at += found.consumed;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  switch (input.u8() % 4) {
    case 0:
      fuzz_startup(input);
      break;
    case 1:
      fuzz_negotiation(input);
      break;
    default:
      fuzz_stream(input);
  }
  return 0;
}
