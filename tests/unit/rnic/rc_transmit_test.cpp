// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_transmit.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>
#include "support/catch.h"

#include "base/byte_order.h"
#include "base/crc32c.h"
#include "parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

using Fault = RcTransmit::Fault;
using rdmap::Opcode;
using Octets = std::vector<std::byte>;

/// Takes so many bytes, and keeps them.
class Sink final : public llp::Stream {
 public:
  llp::IoResult send(std::span<const ConstBytes> pieces) override {
    if (error != 0) return {.status = llp::IoStatus::failed, .error = error};
    size_t count = 0;
    for (ConstBytes piece : pieces)
      for (const std::byte one : piece)
        if (room != 0) --room, ++count, bytes.push_back(one);
    if (count == 0) return {.status = llp::IoStatus::would_block};
    return {.bytes = count};
  }
  llp::IoResult receive(Bytes) override { return {.status = llp::IoStatus::would_block}; }
  void shutdown_send() override {}
  void abort() override {}
  size_t maximum_segment() const override { return 1460; }
  Address local_address() const override { return {}; }
  Address peer_address() const override { return {}; }
  bool send_needs_crc() const override { return needs_crc; }

  Octets bytes;
  bool needs_crc = true;
  size_t room = std::numeric_limits<size_t>::max();
  int error = 0;
};

/// An FPDU as RFC 5044 section 4 has it, taken off a stream and read by RFC 5041 figures 3 and 5.
struct Framed {
  bool tagged = false;
  bool last = false;
  Opcode opcode = Opcode::send;
  uint32_t stag = 0;
  uint64_t offset = 0;  // TO, or MO
  uint32_t invalidate = 0;
  uint32_t queue = 0;
  uint32_t msn = 0;
  std::string payload;
  bool crc = false;  // it is there, and right
};

std::vector<Framed> deframe(const Octets& stream) {
  std::vector<Framed> all;
  for (size_t at = 0; at < stream.size();) {
    const size_t length = load_be<uint16_t>(&stream.at(at));
    const std::byte* const ulpdu = &stream.at(at + 2);
    const size_t whole = (2 + length + 3) / 4 * 4;
    REQUIRE(at + whole + 4 <= stream.size());
    Framed one;
    one.tagged = (ulpdu[0] & std::byte{0x80}) != std::byte{0};
    one.last = (ulpdu[0] & std::byte{0x40}) != std::byte{0};
    CHECK((ulpdu[0] & std::byte{3}) == std::byte{1});
    CHECK((ulpdu[1] & std::byte{0xC0}) == std::byte{0x40});
    one.opcode = static_cast<Opcode>(ulpdu[1] & std::byte{15});
    const size_t header = one.tagged ? 14 : 18;
    if (one.tagged) {
      one.stag = load_be<uint32_t>(ulpdu + 2);
      one.offset = load_be<uint64_t>(ulpdu + 6);
    } else {
      one.invalidate = load_be<uint32_t>(ulpdu + 2);
      one.queue = load_be<uint32_t>(ulpdu + 6);
      one.msn = load_be<uint32_t>(ulpdu + 10);
      one.offset = load_be<uint32_t>(ulpdu + 14);
    }
    one.payload.assign(reinterpret_cast<const char*>(ulpdu + header), length - header);
    const ConstBytes covered = ConstBytes(stream).subspan(at, whole);
    one.crc = load_crc32c(&stream.at(at + whole)) == crc32c(covered);
    all.push_back(std::move(one));
    at += whole + 4;
  }
  return all;
}

struct Fixture : Memory {
  explicit Fixture(const mpa::NegotiatedParameters& parameters = {}, bool initiator = true,
                   const StreamOptions& options = {}) {
    requester.start(2);
    responder.start(4);
    transmit.start(parameters, initiator, options);
    std::ranges::generate(text, [n = 0]() mutable { return static_cast<char>('a' + n++ % 26); });
    std::copy_n(bytes_of(text).begin(), text.size(), canvas.at(0));
  }

  void post(SendWorkRequest request) { REQUIRE_FALSE(sends.queue.post(request)); }
  void send(size_t offset, size_t length, SendFlags flags = SendFlags::signaled) {
    post({.sges = sge(region, offset, length), .flags = flags});
  }
  void read(size_t length, SendFlags flags = SendFlags::signaled) {
    post({.sges = sge(region, 0, length), .flags = flags, .opcode = WrOpcode::rdma_read});
  }
  RcTransmit::Context context() {
    return {sends.queue, requester,    responder,   stream, counters,
            protection,  serves_sends, kBurstBytes, false};
  }
  RcTransmit::Result run() { return transmit.run(context(), kNow); }
  /// All bytes that are sent now.
  std::vector<Framed> sent() {
    stream.bytes.clear();
    while (run().pending == Pending::more) {
    }
    return deframe(stream.bytes);
  }

  std::string text = std::string(Canvas::kSize, 'x');
  Sends sends;
  Counters counters;
  bool serves_sends = true;
  STag region = add(0, Canvas::kSize);
  RcRequester requester{protection, sends.queue};
  RcResponder responder{protection};
  RcTransmit transmit;
  Sink stream;
};

/// FPDUs of at most so many bytes carry 128 bytes of ULPDU, which is the least (RFC 5044).
constexpr StreamOptions kSmall{.max_fpdu = 1};
constexpr size_t kUntaggedPayload = 128 - 18;
constexpr size_t kTaggedPayload = 128 - 14;

}  // namespace

TEST_CASE("rc transmit: a Send is one FPDU whose bytes the RFCs tell") {
  Fixture f({.crc = false});
  f.send(0, 3);
  f.run();
  const std::string_view golden(
      "\x00\x15"          // length of the ULPDU: 21
      "\x41\x43"          // untagged, last, DDP 1; RDMAP 1, Send
      "\x00\x00\x00\x00"  // no STag to invalidate
      "\x00\x00\x00\x00"  // queue 0
      "\x00\x00\x00\x01"  // MSN 1
      "\x00\x00\x00\x00"  // MO 0
      "abc"
      "\x00"               // padding
      "\x00\x00\x00\x00",  // no CRC
      28);
  CHECK(std::ranges::equal(f.stream.bytes, bytes_of(golden)));
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rc transmit: a message is cut by its offset, and only its last segment says so") {
  Fixture f({}, true, kSmall);
  f.send(0, 2 * kUntaggedPayload + 5);
  f.send(0, 0);
  const auto all = f.sent();
  REQUIRE(all.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(all[i].msn == 1);
    CHECK(all[i].queue == 0);
    CHECK(all[i].offset == i * kUntaggedPayload);
    CHECK(all[i].last == (i == 2));
    CHECK(all[i].crc);
  }
  CHECK(all[0].payload + all[1].payload + all[2].payload ==
        f.text.substr(0, 2 * kUntaggedPayload + 5));
  CHECK(all[3].msn == 2);
  CHECK(all[3].last);
  CHECK(all[3].payload.empty());
}

TEST_CASE("rc transmit: a Write names its memory in each segment, and wraps no offset") {
  Fixture f({}, true, kSmall);
  const uint64_t offset = UINT64_MAX - kTaggedPayload;
  f.post({.sges = f.sge(f.region, 0, kTaggedPayload + 1),
          .opcode = WrOpcode::rdma_write,
          .remote = {.stag = 0xABCD, .offset = offset}});
  const auto all = f.sent();
  REQUIRE(all.size() == 2);
  for (const Framed& one : all) {
    CHECK(one.tagged);
    CHECK(one.opcode == Opcode::rdma_write);
    CHECK(one.stag == 0xABCD);
  }
  CHECK(all[0].offset == offset);
  CHECK(all[1].offset == UINT64_MAX);
  CHECK(all[1].last);
}

TEST_CASE("rc transmit: it makes no difference how much the stream takes at a time") {
  const size_t piece = GENERATE(size_t{1}, size_t{3}, size_t{50}, size_t{129});
  CAPTURE(piece);
  Fixture f({}, true, kSmall);
  f.send(0, 200);
  f.send(10, 30);
  f.stream.room = 0;
  CHECK(f.run().pending == Pending::writable);
  Octets all;
  while (f.sends.queue.pending() != nullptr) {
    f.stream.room = piece;
    f.run();
  }
  const auto framed = deframe(f.stream.bytes);
  REQUIRE(framed.size() == 3);
  for (const Framed& one : framed) CHECK(one.crc);
  CHECK(framed[0].payload + framed[1].payload == f.text.substr(0, 200));
  CHECK(framed[2].payload == f.text.substr(10, 30));
}

TEST_CASE("rc transmit: what goes through memory of the host is not sealed") {
  Fixture f({}, true, kSmall);
  f.stream.needs_crc = false;
  f.send(0, 200);
  for (const Framed& one : f.sent()) CHECK_FALSE(one.crc);
  f.stream.needs_crc = true;
  f.send(0, 200);
  for (const Framed& one : f.sent()) CHECK(one.crc);
}

TEST_CASE(
    "rc transmit: what was framed for memory of the host is sealed before the network has it") {
  const size_t first = GENERATE(size_t{0}, size_t{1}, size_t{50});
  CAPTURE(first);
  Fixture f({}, true, kSmall);
  f.send(0, 2 * kUntaggedPayload + 5);
  f.stream.needs_crc = false;
  f.stream.room = first;
  f.run();
  f.stream.needs_crc = true;
  f.stream.room = std::numeric_limits<size_t>::max();
  while (f.run().pending == Pending::more) {
  }
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
  const auto all = deframe(f.stream.bytes);
  REQUIRE(all.size() == 3);
  CHECK(all[0].crc == (first == 0));
  CHECK(all[1].crc);
  CHECK(all[2].crc);
  CHECK(all[0].payload + all[1].payload + all[2].payload ==
        f.text.substr(0, 2 * kUntaggedPayload + 5));
}

TEST_CASE("rc transmit: a request is done when its last byte is on the stream, and not before") {
  Fixture f({.crc = false});
  f.send(0, 3);  // 28 bytes, as above
  f.stream.room = 27;
  CHECK(f.run().fpdus == 0);
  CHECK(f.sends.statuses().empty());
  CHECK_FALSE(f.transmit.at_boundary());
  f.stream.room = 1;
  CHECK(f.run().fpdus == 1);
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
  CHECK(f.transmit.at_boundary());
  CHECK(f.transmit.drained());
}

TEST_CASE("rc transmit: each queue counts its MSNs from 1") {
  Fixture f;
  f.send(0, 1);
  f.read(1);
  f.post({.opcode = WrOpcode::immediate, .immediate = 0x0102030405060708});
  f.post({.sges = f.sge(f.region, 0, 8), .opcode = WrOpcode::fetch_add});
  const auto all = f.sent();
  REQUIRE(all.size() == 4);
  CHECK(all[0].msn == 1);
  CHECK(all[1].opcode == Opcode::read_request);
  CHECK(all[1].queue == 1);
  CHECK(all[1].msn == 1);
  CHECK(all[2].opcode == Opcode::immediate);
  CHECK(all[2].queue == 0);
  CHECK(all[2].msn == 2);
  CHECK(all[2].payload == "\x01\x02\x03\x04\x05\x06\x07\x08");
  CHECK(all[3].opcode == Opcode::atomic_request);
  CHECK(all[3].queue == 1);
  CHECK(all[3].msn == 2);
}

TEST_CASE("rc transmit: a Read beyond ORD waits, and requests posted after it wait with it") {
  Fixture f;
  for (int i = 0; i < 3; ++i) f.read(1);
  f.send(0, 3);
  CHECK(f.sent().size() == 2);
  REQUIRE_FALSE(f.requester.take_read_response(
      {.opcode = Opcode::read_response, .stag = f.region, .payload = bytes_of("a")}));
  const auto all = f.sent();
  REQUIRE(all.size() == 2);
  CHECK(all[0].opcode == Opcode::read_request);
  CHECK(all[1].opcode == Opcode::send);
}

TEST_CASE("rc transmit: a fenced request waits for the Reads before it, others do not") {
  Fixture f;
  f.read(1);
  f.send(0, 3);
  f.send(0, 3, SendFlags::signaled | SendFlags::fence);
  CHECK(f.sent().size() == 2);
  CHECK(f.sent().empty());
  REQUIRE_FALSE(f.requester.take_read_response(
      {.opcode = Opcode::read_response, .stag = f.region, .payload = bytes_of("a")}));
  CHECK(f.sent().size() == 1);
}

TEST_CASE("rc transmit: where the connection allows no Reads one fails") {
  Fixture f;
  f.requester.start(0);
  f.read(1);
  const auto result = f.run();
  CHECK(result.fault == Fault::bad_send);
  CHECK(result.status == WcStatus::local_qp_operation_error);
}

TEST_CASE("rc transmit: a request that fails waits until all before it is sent") {
  Fixture f;
  f.send(0, 3);
  f.post({.sges = f.sge(f.region ^ 1, 0, 3)});
  const auto first = f.run();
  CHECK(first.fault == Fault::none);
  CHECK(first.fpdus == 1);
  CHECK(first.pending == Pending::more);
  const auto second = f.run();
  CHECK(second.fault == Fault::bad_send);
  CHECK(second.status == WcStatus::local_protection_error);
  CHECK(deframe(f.stream.bytes).size() == 1);
}

TEST_CASE("rc transmit: a local operation is done in its turn, and later requests see its effect") {
  Fixture f;
  const STag other = f.add(0, 10);
  f.post({.sges = f.sge(other, 0, 3)});
  f.post({.opcode = WrOpcode::local_invalidate, .invalidate_stag = other});
  f.post({.sges = f.sge(other, 0, 3)});
  f.stream.room = 10;
  f.run();
  CHECK(f.protection.find(other)->valid);  // the Send before it is not out
  f.stream.room = std::numeric_limits<size_t>::max();
  f.run();
  const auto result = f.run();
  CHECK_FALSE(f.protection.find(other)->valid);
  CHECK(result.fault == Fault::bad_send);
  CHECK(f.sends.statuses() == Statuses{WcStatus::success, WcStatus::success});
}

TEST_CASE("rc transmit: memory that goes while a message is sent ends the connection within it") {
  Fixture f({}, true, kSmall);
  f.send(0, 200);
  f.stream.room = 50;
  f.run();
  REQUIRE(f.stags.erase(f.region));
  f.stream.room = 1000;
  const auto result = f.run();
  CHECK(result.fault == Fault::bad_send);
  CHECK(result.status == WcStatus::local_protection_error);
  CHECK(f.stream.bytes.size() == 50);
  // Nobody can finish the FPDU, so no Terminate can follow it.
  CHECK(f.transmit.final_bytes(f.context(), bytes_of("terminate")).empty());
}

TEST_CASE("rc transmit: before a Terminate the FPDU that was begun is finished, and no other") {
  Fixture f({}, true, kSmall);
  f.send(0, 200);
  f.stream.room = 50;
  f.run();
  const auto ulpdu = [] {
    Octets out(rdmap::kMaxTerminateUlpdu);
    out.resize(rdmap::encode_terminate(rdmap::fault::kBadCrc, {}, out));
    return out;
  }();
  const auto bytes = f.transmit.final_bytes(f.context(), ulpdu);
  Octets all = f.stream.bytes;
  all.insert(all.end(), bytes.begin(), bytes.end());
  const auto framed = deframe(all);
  REQUIRE(framed.size() == 2);
  CHECK(framed[0].payload == f.text.substr(0, kUntaggedPayload));
  CHECK(framed[0].crc);
  CHECK(framed[1].opcode == Opcode::terminate);
  CHECK(framed[1].queue == 2);
  CHECK(framed[1].msn == 1);
  CHECK(framed[1].crc);
}

TEST_CASE("rc transmit: a responder sends nothing until it was allowed to, not even responses") {
  Fixture f({}, false);
  REQUIRE_FALSE(f.responder.take(rdmap::ReadRequest{.length = 3, .source_stag = f.region}));
  f.send(0, 3);
  CHECK(f.sent().empty());
  f.transmit.messages().allow();
  CHECK(f.sent().size() == 2);
}

TEST_CASE("rc transmit: responses and requests take turns, and one is finished before the next") {
  Fixture f({}, true, kSmall);
  for (uint32_t i = 1; i <= 2; ++i)
    REQUIRE_FALSE(f.responder.take(rdmap::ReadRequest{
        .sink_stag = i, .sink_offset = 70, .length = 200, .source_stag = f.region}));
  f.send(0, 200);
  const auto all = f.sent();
  REQUIRE(all.size() == 6);
  CHECK(all[0].opcode == Opcode::read_response);
  CHECK(all[0].stag == 1);
  CHECK(all[0].offset == 70);
  CHECK_FALSE(all[0].last);
  CHECK(all[1].offset == 70 + kTaggedPayload);
  CHECK(all[1].last);
  CHECK(all[2].opcode == Opcode::send);
  CHECK(all[3].last);
  CHECK(all[4].stag == 2);
  CHECK(f.responder.next() == nullptr);
}

TEST_CASE("rc transmit: a response without requests to send goes out though none may begin") {
  Fixture f;
  f.serves_sends = false;
  f.send(0, 3);
  REQUIRE_FALSE(f.responder.take(rdmap::ReadRequest{.length = 0}));
  const auto all = f.sent();
  REQUIRE(all.size() == 1);
  CHECK(all[0].opcode == Opcode::read_response);
  CHECK(all[0].last);
}

TEST_CASE(
    "rc transmit: memory that a peer reads may change while it is sent, and the CRC stays right") {
  Fixture f({}, true, kSmall);
  REQUIRE_FALSE(f.responder.take(rdmap::ReadRequest{.length = 100, .source_stag = f.region}));
  f.stream.room = 40;
  f.run();
  f.canvas.wipe();
  f.stream.room = 1000;
  f.run();
  const auto all = deframe(f.stream.bytes);
  REQUIRE(all.size() == 1);
  CHECK(all[0].crc);
  CHECK(all[0].payload == f.text.substr(0, 100));
}

TEST_CASE("rc transmit: where payload is copied memory may change while it is sent") {
  Fixture f({}, true, {.max_fpdu = 1, .copy_payload = true});
  f.stream.room = 40;
  f.post({.sges = {f.sge(f.region, 5, 30), f.sge(f.region, 50, 200)}});
  f.run();
  f.canvas.wipe();
  f.stream.room = 1000;
  f.run();
  const auto all = deframe(f.stream.bytes);
  REQUIRE(all.size() == 3);
  std::string payload;
  for (const Framed& one : all) {
    CHECK(one.crc);
    payload += one.payload;
  }
  CHECK(payload == f.text.substr(5, 30) + f.text.substr(50, 200));
}

TEST_CASE("rc transmit: memory that a peer reads, and that has gone, ends the connection") {
  Fixture f;
  REQUIRE_FALSE(f.responder.take(rdmap::ReadRequest{.length = 3, .source_stag = f.region}));
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.run().fault == Fault::bad_response);
  CHECK(f.stream.bytes.empty());
}

TEST_CASE("rc transmit: an atomic is done once, though the stream takes its response in parts") {
  Fixture f;
  f.canvas.wipe();
  REQUIRE_FALSE(
      f.responder.take(rdmap::AtomicRequest{.request_id = 9, .stag = f.region, .operand = 1}));
  uint64_t before = 0, after = 0;
  std::copy_n(f.canvas.at(0), 8, reinterpret_cast<std::byte*>(&before));
  while (f.responder.next() != nullptr || !f.transmit.drained()) {
    f.stream.room = 5;
    f.run();
  }
  std::copy_n(f.canvas.at(0), 8, reinterpret_cast<std::byte*>(&after));
  CHECK(after == before + 1);
  const auto all = deframe(f.stream.bytes);
  REQUIRE(all.size() == 1);
  CHECK(all[0].opcode == Opcode::atomic_response);
  CHECK(all[0].queue == 3);
  CHECK(load_be<uint32_t>(bytes_of(all[0].payload).data()) == 9);
  CHECK(load_be<uint64_t>(bytes_of(all[0].payload).data() + 4) == before);
}

TEST_CASE("rc transmit: the initiator's first message makes ready, before all that is posted") {
  const auto first = [](ReadyToReceive kind) {
    Fixture f({.ready = kind});
    f.send(0, 3);
    const auto all = f.sent();
    REQUIRE(all.size() == 2);
    CHECK(all[1].opcode == Opcode::send);
    CHECK(all[1].msn == (kind == ReadyToReceive::send ? 2 : 1));
    CHECK(all[0].last);
    CHECK(f.sends.statuses() == Statuses{WcStatus::success});  // no request's
    return all[0];
  };
  CHECK(first(ReadyToReceive::send).payload.empty());
  CHECK(first(ReadyToReceive::write).opcode == Opcode::rdma_write);
  CHECK(first(ReadyToReceive::write).payload.empty());
  const Framed read = first(ReadyToReceive::read);
  CHECK(read.opcode == Opcode::read_request);
  CHECK(load_be<uint32_t>(bytes_of(read.payload).data() + 12) == 0);  // its length
}

TEST_CASE("rc transmit: a stream that fails is told of with its errno") {
  Fixture f;
  f.send(0, 3);
  f.stream.error = EPIPE;
  const auto result = f.run();
  CHECK(result.fault == Fault::stream_failed);
  CHECK(result.error == EPIPE);
  CHECK(f.sends.statuses().empty());
}

TEST_CASE("rc transmit: memory for a burst is given back when nothing was sent for a while") {
  Fixture f;
  f.send(0, 3);
  f.run();
  CHECK(f.transmit.keeps_memory());
  CHECK(f.transmit.trim());
  CHECK_FALSE(f.transmit.trim());
  CHECK_FALSE(f.transmit.keeps_memory());
  f.send(0, 3);
  CHECK(f.sent().size() == 1);
}
