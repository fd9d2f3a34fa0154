// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_receive.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>
#include "support/catch.h"

#include "base/byte_order.h"
#include "base/crc32c.h"
#include "parts.h"
#include "rdmap/terminate.h"
#include "rnic/engine/engine_buffers.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

namespace fault = rdmap::fault;
using Octets = std::vector<std::byte>;

// --- Bytes as the RFCs lay them out.

template <class T>
void append(Octets& out, T value) {
  out.resize(out.size() + sizeof value);
  store_be(out.data() + out.size() - sizeof value, value);
}
void append(Octets& out, std::string_view text) {
  out.insert(out.end(), bytes_of(text).begin(), bytes_of(text).end());
}

// RFC 5040 figure 4 and RFC 7306 figure 3.
constexpr uint8_t kWrite = 0, kReadRequest = 1, kSend = 3, kSendInvalidate = 4, kSendSolicited = 5,
                  kTerminate = 7, kImmediate = 8, kImmediateSolicited = 9;

/// RFC 5041 figure 5, with RDMAP's control octet (version 1) and word.
struct Untagged {
  uint8_t opcode = kSend;
  uint32_t msn = 1;
  uint32_t mo = 0;
  bool last = true;
  uint32_t queue = 0;
  uint32_t invalidate = 0;
  std::string_view payload = {};

  Octets ulpdu() const {
    Octets out;
    append(out, static_cast<uint8_t>((last ? 0x40 : 0) | 1));
    append(out, static_cast<uint8_t>(0x40 | opcode));
    append(out, invalidate);
    append(out, queue);
    append(out, msn);
    append(out, mo);
    append(out, payload);
    return out;
  }
};

/// RFC 5041 figure 3.
Octets write_ulpdu(uint32_t stag, uint64_t offset, std::string_view payload, bool last = true) {
  Octets out;
  append(out, static_cast<uint8_t>(0x80 | (last ? 0x40 : 0) | 1));
  append(out, static_cast<uint8_t>(0x40 | kWrite));
  append(out, stag);
  append(out, offset);
  append(out, payload);
  return out;
}

/// RFC 5040 figure 8.
Octets read_ulpdu(uint32_t msn, uint32_t length, uint32_t stag, uint64_t offset) {
  Octets out = Untagged{.opcode = kReadRequest, .msn = msn, .queue = 1}.ulpdu();
  append(out, uint32_t{0x51});
  append(out, uint64_t{0});
  append(out, length);
  append(out, stag);
  append(out, offset);
  return out;
}

/// RFC 5044 section 4. Without a CRC there is a zero in its place.
Octets fpdu(const Octets& ulpdu, bool crc = false) {
  Octets out;
  append(out, static_cast<uint16_t>(ulpdu.size()));
  out.insert(out.end(), ulpdu.begin(), ulpdu.end());
  while (out.size() % 4 != 0) append(out, uint8_t{0});
  const uint32_t sum = crc ? crc32c(out) : 0;
  for (int shift = 0; shift < 32; shift += 8) append(out, static_cast<uint8_t>(sum >> shift));
  return out;
}

Octets operator+(Octets a, const Octets& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A stream whose reads the test has written down.
class Script final : public llp::Stream {
 public:
  llp::IoResult send(std::span<const ConstBytes>) override { return {}; }
  llp::IoResult receive(Bytes buffer) override {
    if (pieces.empty()) return end;
    const size_t count = std::min(buffer.size(), pieces.front().size());
    std::copy_n(pieces.front().begin(), count, buffer.begin());
    pieces.front().erase(pieces.front().begin(),
                         pieces.front().begin() + static_cast<ptrdiff_t>(count));
    if (pieces.front().empty()) pieces.pop_front();
    return {.bytes = count};
  }
  void shutdown_send() override {}
  void abort() override {}
  size_t maximum_segment() const override { return 1460; }
  Address local_address() const override { return {}; }
  Address peer_address() const override { return {}; }

  bool received_needs_crc() const override { return sealed; }

  std::deque<Octets> pieces;
  bool sealed = true;  // what is read from now on
  llp::IoResult end{.status = llp::IoStatus::would_block};
};

struct Fixture : Memory {
  explicit Fixture(ReceiveNotReady policy = ReceiveNotReady::hold,
                   const mpa::NegotiatedParameters& parameters = {.crc = false},
                   bool initiator = true)
      : receive({receives.buffers, protection, requester, responder}, counters, policy) {
    requester.start(4);
    responder.start(2);
    receive.start(parameters, initiator, {});
  }

  /// Bytes that come at once are read at once.
  RcEnd come(const Octets& bytes) {
    stream.pieces.push_back(bytes);
    return read();
  }
  RcEnd read() {
    RcEnd end = RcEnd::none;
    for (int turn = 0; turn < 100; ++turn) {
      if (end != RcEnd::none || receive.delivery().held() || stream.pieces.empty()) return end;
      end = receive.read(stream, buffer);
    }
    throw std::runtime_error("what came is not taken");
  }
  RcEnd end_with(const llp::IoResult& result) {
    stream.end = result;
    return receive.read(stream, buffer);
  }
  void post(uint64_t wr_id, size_t offset, size_t length) {
    REQUIRE_FALSE(receives.post(wr_id, sge(region, offset, length)));
  }
  /// Writes into a region of the canvas with this STag.
  std::optional<TerminateCode> write(STag stag, uint64_t offset, std::string_view text) {
    come(fpdu(write_ulpdu(stag, offset, text)));
    return receive.termination().code();
  }

  Receives receives;
  Sends sends;
  Counters counters;
  STag region = add(0, Canvas::kSize);
  RcRequester requester{protection, sends.queue};
  RcResponder responder{protection};
  RcReceive receive;
  Script stream;
  std::vector<std::byte> buffer = std::vector<std::byte>(kStreamBufferBytes);
};

Octets send(uint32_t msn, std::string_view text) {
  return fpdu(Untagged{.msn = msn, .payload = text}.ulpdu());
}

}  // namespace

// --- Sends.

TEST_CASE(
    "rc receive: the segments of a Send are placed by their offset, and complete one receive") {
  Fixture f;
  f.post(7, 10, 20);
  CHECK(f.come(fpdu(Untagged{.last = false, .payload = "abcd"}.ulpdu())) == RcEnd::none);
  CHECK(f.receives.reported().empty());
  CHECK(f.come(fpdu(Untagged{.mo = 4, .payload = "ef"}.ulpdu())) == RcEnd::none);
  CHECK(f.canvas.has_only(10, "abcdef"));
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 7);
  CHECK(done[0].status == WcStatus::success);
  CHECK(done[0].opcode == WcOpcode::recv);
  CHECK(done[0].byte_count == 6);
  CHECK_FALSE(done[0].solicited);
  CHECK(f.counters.get(Counter::rc_rx_fpdus) == 2);
}

TEST_CASE("rc receive: it makes no difference how the stream is cut") {
  const Octets all = send(1, "abc") + send(2, "") + send(3, "defgh");
  const size_t piece = GENERATE(size_t{1}, size_t{2}, size_t{7}, size_t{33}, size_t{1000});
  CAPTURE(piece);
  Fixture f;
  for (uint64_t id = 1; id <= 3; ++id) f.post(id, id * 20, 10);
  for (size_t at = 0; at < all.size(); at += piece) {
    const size_t count = std::min(piece, all.size() - at);
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at);
    REQUIRE(f.come(Octets(begin, begin + static_cast<ptrdiff_t>(count))) == RcEnd::none);
  }
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 3);
  CHECK(done[0].byte_count == 3);
  CHECK(done[1].byte_count == 0);
  CHECK(done[2].byte_count == 5);
  CHECK(f.counters.get(Counter::rc_rx_bytes) == all.size());
}

TEST_CASE("rc receive: a segment that does not fit the receive is not placed, nor is any of it") {
  Fixture f;
  f.post(7, 10, 5);
  REQUIRE(f.come(fpdu(Untagged{.last = false, .payload = "abcd"}.ulpdu())) == RcEnd::none);
  const Octets ulpdu = Untagged{.mo = 4, .payload = "ef"}.ulpdu();
  CHECK(f.come(fpdu(ulpdu)) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == TerminateCode{1, 2, 5});
  CHECK(f.canvas.has_only(10, "abcd"));
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::local_length_error);
  CHECK(f.receive.termination().offending_length() == ulpdu.size());
  CHECK(std::ranges::equal(f.receive.termination().offending().first(18),
                           ConstBytes(ulpdu).first(18)));
}

TEST_CASE("rc receive: a receive of no bytes takes an empty Send, and no other") {
  Fixture f;
  REQUIRE_FALSE(f.receives.post(1));
  REQUIRE_FALSE(f.receives.post(2));
  CHECK(f.come(send(1, "")) == RcEnd::none);
  CHECK(f.receives.reported().size() == 1);
  CHECK(f.come(send(2, "a")) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == fault::kMessageTooLong);
}

TEST_CASE("rc receive: memory of a receive that goes between two segments ends the connection") {
  Fixture f;
  f.post(7, 10, 20);
  REQUIRE(f.come(fpdu(Untagged{.last = false, .payload = "abcd"}.ulpdu())) == RcEnd::none);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.come(fpdu(Untagged{.mo = 4, .payload = "ef"}.ulpdu())) == RcEnd::bad_receive);
  CHECK(f.receive.termination().code() == TerminateCode{0, 0, 0});
  CHECK(f.receive.termination().offending().empty());  // the peer's segment is not to blame
  CHECK(f.canvas.has_only(10, "abcd"));
  REQUIRE(f.receives.reported().at(0).status == WcStatus::local_protection_error);
}

TEST_CASE(
    "rc receive: a receive that may not be written ends the connection with its first bytes") {
  Fixture f;
  const STag closed = f.add(0, 100, Access::remote_write);
  REQUIRE_FALSE(f.receives.post(7, f.sge(closed, 0, 10)));
  CHECK(f.come(send(1, "abc")) == RcEnd::bad_receive);
  CHECK(f.canvas.untouched());
  CHECK(f.receives.reported().at(0).status == WcStatus::local_protection_error);
}

TEST_CASE("rc receive: a wrong segment takes no receive, and those before it are delivered") {
  Fixture f;
  for (uint64_t id = 1; id <= 3; ++id) f.post(id, id * 10, 10);
  CHECK(f.come(send(1, "abc") + send(3, "def")) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == fault::kInvalidMsn);
  CHECK(f.receives.reported().size() == 1);
  CHECK(f.receives.next() == 2);
  CHECK(f.canvas.has_only(10, "abc"));
}

TEST_CASE("rc receive: the first Send has MSN 1, and its first segment offset 0") {
  Fixture f;
  f.post(1, 0, 10);
  CHECK(f.come(send(0, "abc")) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == fault::kInvalidMsn);
  Fixture g;
  g.post(1, 0, 10);
  CHECK(g.come(fpdu(Untagged{.mo = 1, .payload = "abc"}.ulpdu())) == RcEnd::protocol_error);
  CHECK(g.receive.termination().code() == fault::kInvalidOffset);
  CHECK(g.canvas.untouched());
}

// --- Where no receive is posted.

TEST_CASE("rc receive: a Send without a receive holds the stream, with what follows it") {
  Fixture f;
  CHECK(f.come(send(1, "abc") + fpdu(write_ulpdu(f.region, 100, "w"))) == RcEnd::none);
  CHECK(f.receive.delivery().held());
  CHECK(f.receives.buffers.take_wish());
  CHECK(f.canvas.untouched());  // the Write is after it
  f.post(7, 10, 10);
  CHECK(f.receive.resume() == RcEnd::none);
  CHECK_FALSE(f.receive.delivery().held());
  CHECK(f.receives.reported().at(0).wr_id == 7);
  CHECK(*f.canvas.at(100) == std::byte{'w'});
}

TEST_CASE("rc receive: a stream that is held goes on holding until there is a receive") {
  Fixture f;
  f.come(send(1, "abc"));
  CHECK(f.receive.resume() == RcEnd::none);
  CHECK(f.receive.delivery().held());
  CHECK(f.receive.give_up_waiting() == RcEnd::bad_receive);
  CHECK(f.receive.termination().code() == TerminateCode{1, 2, 2});
  CHECK(f.receive.resume() == RcEnd::bad_receive);  // an end stays one
}

TEST_CASE("rc receive: a queue pair that does not hold ends the connection with the first Send") {
  Fixture f(ReceiveNotReady::terminate);
  CHECK(f.come(fpdu(write_ulpdu(f.region, 100, "w"))) == RcEnd::none);  // needs no receive
  CHECK(f.come(send(1, "abc")) == RcEnd::bad_receive);
  CHECK(f.receive.termination().code() == fault::kNoBuffer);
  CHECK_FALSE(f.receive.delivery().held());
}

TEST_CASE("rc receive: once a message was discarded, so are those after it, whatever is posted") {
  Fixture f;
  f.receive.delivery().discard_unwanted();
  f.post(1, 0, 10);
  CHECK(f.come(send(1, "abc") + send(2, "def")) == RcEnd::none);
  f.post(2, 20, 10);
  CHECK(f.come(send(3, "ghi") + fpdu(write_ulpdu(f.region, 100, "w"))) == RcEnd::none);
  CHECK(f.receives.reported().size() == 1);
  CHECK(f.receives.next() == 2);
  CHECK(*f.canvas.at(0) == std::byte{'a'});
  CHECK(*f.canvas.at(20) == Canvas::kUntouched);
  CHECK(*f.canvas.at(100) == std::byte{'w'});
}

// --- Writes.

TEST_CASE("rc receive: a Write goes where it says, to the first and last byte of its region") {
  Fixture f;
  const STag stag = f.add(50, 10, kAllRights, UINT64_MAX - 9);
  CHECK_FALSE(f.write(stag, UINT64_MAX - 9, "abcdefghij"));
  CHECK(f.canvas.has_only(50, "abcdefghij"));
  CHECK_FALSE(f.write(stag, UINT64_MAX, "z"));
  CHECK(f.canvas.has_only(50, "abcdefghiz"));
}

TEST_CASE("rc receive: of several faults of a Write the first in the order of RFC 5041 is told") {
  const auto found = [](auto&& make, uint64_t offset) {
    Fixture f;
    const auto code = f.write(make(f), offset, "ab");
    CHECK(f.canvas.untouched());
    REQUIRE(code);
    return *code;
  };
  const auto unknown = [](Fixture& f) { return f.region ^ 1; };
  const auto foreign = [](Fixture& f) { return f.add(0, 10, Access::none, 100, kDomain + 1); };
  const auto closed = [](Fixture& f) { return f.add(0, 10, Access::remote_read, 100); };
  const auto open = [](Fixture& f) { return f.add(0, 10, kAllRights, 100); };
  CHECK(found(unknown, UINT64_MAX) == TerminateCode{1, 1, 0});
  CHECK(found(foreign, UINT64_MAX) == TerminateCode{1, 1, 2});
  CHECK(found(closed, UINT64_MAX) == TerminateCode{0, 1, 2});
  CHECK(found(open, UINT64_MAX) == TerminateCode{1, 1, 3});
  CHECK(found(open, 99) == TerminateCode{1, 1, 1});
  CHECK(found(open, 109) == TerminateCode{1, 1, 1});
}

TEST_CASE("rc receive: the memory that a Write of no bytes names is not looked at") {
  Fixture f;
  CHECK_FALSE(f.write(0xDEADBEEF, UINT64_MAX, ""));
}

TEST_CASE("rc receive: a Write's memory is checked with each of its segments") {
  Fixture f;
  const STag stag = f.add(0, 100);
  REQUIRE(f.come(fpdu(write_ulpdu(stag, 0, "abc", false))) == RcEnd::none);
  REQUIRE(f.stags.erase(stag));
  CHECK(f.write(stag, 3, "def") == fault::kTaggedInvalidStag);
  CHECK(f.canvas.has_only(0, "abc"));
}

// --- Immediate data, invalidation, requests.

TEST_CASE("rc receive: immediate data take a receive, and write nothing into it") {
  Fixture f;
  f.post(1, 0, 10);
  REQUIRE_FALSE(f.receives.post(2));
  const std::string_view data("\x01\x02\x03\x04\x05\x06\x07\x08", 8);
  CHECK(f.come(fpdu(Untagged{.opcode = kImmediate, .payload = data}.ulpdu())) == RcEnd::none);
  CHECK(f.come(fpdu(Untagged{.opcode = kImmediateSolicited, .msn = 2, .payload = data}.ulpdu())) ==
        RcEnd::none);
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 2);
  CHECK(done[0].opcode == WcOpcode::recv_immediate);
  CHECK(done[0].immediate == 0x0102030405060708);
  CHECK(done[0].byte_count == 8);
  CHECK_FALSE(done[0].solicited);
  CHECK(done[1].solicited);
  CHECK(f.canvas.untouched());
}

TEST_CASE("rc receive: a Send with Invalidate closes its STag with its last segment") {
  Fixture f;
  const STag stag = f.add(0, 10, kAllRights | Access::remote_invalidate);
  f.post(7, 10, 20);
  Untagged segment{.opcode = kSendInvalidate, .last = false, .invalidate = stag, .payload = "ab"};
  REQUIRE(f.come(fpdu(segment.ulpdu())) == RcEnd::none);
  CHECK(f.protection.find(stag)->valid);
  segment.last = true;
  segment.mo = 2;
  REQUIRE(f.come(fpdu(segment.ulpdu())) == RcEnd::none);
  CHECK_FALSE(f.protection.find(stag)->valid);
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].invalidated);
  CHECK(done[0].invalidated_stag == stag);
}

TEST_CASE(
    "rc receive: an STag that a peer may not invalidate ends the connection, and stays valid") {
  Fixture f;
  f.post(7, 10, 20);
  const Untagged segment{.opcode = kSendInvalidate, .invalidate = f.region, .payload = "ab"};
  CHECK(f.come(fpdu(segment.ulpdu())) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == TerminateCode{0, 1, 9});
  CHECK(f.protection.find(f.region)->valid);
  CHECK(f.receives.reported().at(0).status == WcStatus::general_error);
}

TEST_CASE("rc receive: a Send with a solicited event says so") {
  Fixture f;
  f.post(7, 10, 20);
  f.come(fpdu(Untagged{.opcode = kSendSolicited, .payload = "ab"}.ulpdu()));
  CHECK(f.receives.reported().at(0).solicited);
}

TEST_CASE("rc receive: a request may come between two segments of a Send") {
  Fixture f;
  f.post(7, 10, 20);
  REQUIRE(f.come(fpdu(Untagged{.last = false, .payload = "ab"}.ulpdu())) == RcEnd::none);
  REQUIRE(f.come(fpdu(read_ulpdu(1, 10, f.region, 0))) == RcEnd::none);
  REQUIRE(f.come(fpdu(write_ulpdu(f.region, 100, "w"))) == RcEnd::none);
  REQUIRE(f.come(fpdu(Untagged{.mo = 2, .payload = "cd"}.ulpdu())) == RcEnd::none);
  CHECK(f.receives.reported().at(0).byte_count == 4);
  REQUIRE(f.responder.next() != nullptr);
  CHECK(std::get<rdmap::ReadRequest>(*f.responder.next()).sink_stag == 0x51);
}

TEST_CASE("rc receive: one request more than IRD allows ends the connection") {
  Fixture f;
  CHECK(f.come(fpdu(read_ulpdu(1, 1, f.region, 0)) + fpdu(read_ulpdu(2, 1, f.region, 0))) ==
        RcEnd::none);
  const Octets ulpdu = read_ulpdu(3, 1, f.region, 0);
  CHECK(f.come(fpdu(ulpdu)) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == fault::kNoBuffer);
  // A Terminate repeats the headers of the request, which are all of it (RFC 5040 section 4.8).
  CHECK(std::ranges::equal(f.receive.termination().offending(), ulpdu));
}

// --- The end.

TEST_CASE("rc receive: a Terminate's code and headers are kept") {
  Fixture f;
  std::string body("\x11\x01\xC0\x00\x00\x20", 6);  // DDP, tagged buffer, bounds; M and D
  const Octets header = write_ulpdu(0x01020304, 5, "");
  body.append(reinterpret_cast<const char*>(header.data()), header.size());
  CHECK(f.come(fpdu(Untagged{.opcode = kTerminate, .queue = 2, .payload = body}.ulpdu())) ==
        RcEnd::terminated);
  CHECK(f.receive.termination().code() == TerminateCode{1, 1, 1});
  CHECK(std::ranges::equal(f.receive.termination().offending(), header));
}

TEST_CASE(
    "rc receive: a Terminate that is too short for what it says ends the connection as well") {
  Fixture f;
  const std::string_view body("\x11\x01\xC0\x00\x00\x20", 6);
  CHECK(f.come(fpdu(Untagged{.opcode = kTerminate, .queue = 2, .payload = body}.ulpdu())) ==
        RcEnd::terminated);
  CHECK(f.receive.termination().code() == fault::kUnspecified);
}

TEST_CASE("rc receive: a stream ends in order between two messages, and nowhere else") {
  constexpr llp::IoResult kClosed{.status = llp::IoStatus::closed};
  Fixture between;
  between.post(7, 10, 20);
  between.come(send(1, "abc"));
  CHECK(between.end_with(kClosed) == RcEnd::closed);
  Fixture inside_fpdu;
  Octets cut = send(1, "abc");
  cut.pop_back();
  inside_fpdu.post(7, 10, 20);
  inside_fpdu.come(cut);
  CHECK(inside_fpdu.end_with(kClosed) == RcEnd::lost);
  Fixture inside_send;
  inside_send.post(7, 10, 20);
  inside_send.come(fpdu(Untagged{.last = false, .payload = "ab"}.ulpdu()));
  CHECK(inside_send.end_with(kClosed) == RcEnd::lost);
  Fixture inside_write;
  inside_write.come(fpdu(write_ulpdu(inside_write.region, 0, "ab", false)));
  CHECK(inside_write.end_with(kClosed) == RcEnd::lost);
}

TEST_CASE("rc receive: an error of the stream says whether the peer is silent or has reset it") {
  CHECK(end_of_stream(ETIMEDOUT) == RcEnd::timed_out);
  CHECK(end_of_stream(EHOSTUNREACH) == RcEnd::timed_out);
  CHECK(end_of_stream(ENETUNREACH) == RcEnd::timed_out);
  CHECK(end_of_stream(ECONNRESET) == RcEnd::lost);
  Fixture f;
  CHECK(f.end_with({.status = llp::IoStatus::failed, .error = ETIMEDOUT}) == RcEnd::timed_out);
}

TEST_CASE("rc receive: an FPDU with a wrong CRC ends the connection before it does anything") {
  Fixture f(ReceiveNotReady::hold, {.crc = true}, false);
  f.post(1, 0, 10);
  f.post(2, 20, 10);
  Octets bad = fpdu(Untagged{.msn = 2, .payload = "def"}.ulpdu(), true);
  bad[20] ^= std::byte{1};
  CHECK_FALSE(f.receive.heard());
  CHECK(f.come(fpdu(Untagged{.payload = "abc"}.ulpdu(), true) + bad) == RcEnd::bad_crc);
  CHECK(f.receive.heard());
  CHECK(f.receive.termination().code() == TerminateCode{2, 0, 2});
  CHECK(f.receive.termination().offending().empty());
  CHECK(f.canvas.has_only(0, "abc"));
  CHECK(f.receives.next() == 2);
}

TEST_CASE("rc receive: an FPDU that came through memory of the host needs no CRC") {
  Fixture f(ReceiveNotReady::hold, {.crc = true});
  f.stream.sealed = false;
  SECTION("one after the other") {
    f.post(1, 0, 10);
    f.post(2, 20, 10);
    CHECK(f.come(send(1, "abc") + send(2, "def")) == RcEnd::none);
  }
  SECTION("though they are held") {
    CHECK(f.come(send(1, "abc") + send(2, "def")) == RcEnd::none);
    f.stream.sealed = true;
    f.post(1, 0, 10);
    f.post(2, 20, 10);
    CHECK(f.receive.resume() == RcEnd::none);
  }
  CHECK(f.receives.reported().size() == 2);
  f.stream.sealed = true;
  CHECK(f.come(send(3, "ghi")) == RcEnd::bad_crc);
}

TEST_CASE("rc receive: where an FPDU began tells whether its CRC has to be right") {
  const Octets whole = send(1, "abc");
  const auto cut = whole.begin() + GENERATE(1, 10, 27);
  const Octets front(whole.begin(), cut);
  const Octets rest(cut, whole.end());
  Fixture f(ReceiveNotReady::hold, {.crc = true});
  f.post(1, 0, 10);
  f.post(2, 20, 10);
  SECTION("in memory of the host, and what follows it on the network") {
    f.stream.sealed = false;
    REQUIRE(f.come(front) == RcEnd::none);
    f.stream.sealed = true;
    CHECK(f.come(rest + send(2, "def")) == RcEnd::bad_crc);
    CHECK(f.receives.reported().size() == 1);
  }
  SECTION("on the network") {
    REQUIRE(f.come(front) == RcEnd::none);
    f.stream.sealed = false;
    CHECK(f.come(rest) == RcEnd::bad_crc);
    CHECK(f.receives.reported().empty());
  }
}

TEST_CASE("rc receive: a responder may send when it has heard an FPDU that is right, not sooner") {
  Fixture f(ReceiveNotReady::hold, {.crc = true}, false);
  Octets bad = fpdu(write_ulpdu(f.region, 0, "abc"), true);
  const Octets good = bad;
  bad.back() ^= std::byte{1};
  Fixture other(ReceiveNotReady::hold, {.crc = true}, false);
  f.come(bad);
  CHECK_FALSE(f.receive.heard());
  other.come(good);
  CHECK(other.receive.heard());
}

TEST_CASE("rc receive: the ready-to-receive message is the one agreed on, and no application's") {
  using Ready = ReadyToReceive;
  const auto first = [](Ready kind, const Octets& ulpdu, RcEnd expected) {
    Fixture f(ReceiveNotReady::hold, {.crc = false, .ready = kind}, false);
    f.post(1, 0, 10);
    CHECK(f.come(fpdu(ulpdu)) == expected);
    CHECK(f.receives.next() == 1);
    return f.receive.termination().code();
  };
  const Octets send = Untagged{}.ulpdu();
  const Octets write = write_ulpdu(0xDEADBEEF, 5, "");
  const Octets read = read_ulpdu(1, 0, 0, 0);
  CHECK_FALSE(first(Ready::send, send, RcEnd::none));
  CHECK_FALSE(first(Ready::write, write, RcEnd::none));
  CHECK_FALSE(first(Ready::read, read, RcEnd::none));
  // RFC 6581 section 8: "no matching RTR".
  CHECK(first(Ready::send, write, RcEnd::protocol_error) == TerminateCode{2, 0, 7});
  CHECK(first(Ready::write, read, RcEnd::protocol_error) == TerminateCode{2, 0, 7});
  CHECK(first(Ready::read, send, RcEnd::protocol_error) == TerminateCode{2, 0, 7});
  CHECK(first(Ready::send, Untagged{.payload = "a"}.ulpdu(), RcEnd::protocol_error) ==
        TerminateCode{2, 0, 7});
  CHECK(first(Ready::read, read_ulpdu(1, 1, 0, 0), RcEnd::protocol_error) ==
        TerminateCode{2, 0, 7});
}

TEST_CASE("rc receive: after a Send that made ready the next one has MSN 2") {
  Fixture f(ReceiveNotReady::hold, {.crc = false, .ready = ReadyToReceive::send}, false);
  f.post(1, 0, 10);
  CHECK(f.come(send(1, "") + send(2, "abc")) == RcEnd::none);
  CHECK(f.receives.reported().at(0).byte_count == 3);
}

TEST_CASE("rc receive: a Read that made ready waits to be answered, within IRD") {
  Fixture f(ReceiveNotReady::hold, {.crc = false, .ready = ReadyToReceive::read}, false);
  CHECK(f.come(fpdu(read_ulpdu(1, 0, 0, 0))) == RcEnd::none);
  CHECK(f.responder.next() != nullptr);
}

TEST_CASE("rc receive: bytes read with the start-up frames come first") {
  Fixture f;
  const Octets all = send(1, "abc") + send(2, "def");
  const size_t cut = all.size() - 5;
  f.receive.start({.crc = false}, true, ConstBytes(all).first(cut));
  for (uint64_t id = 1; id <= 2; ++id) f.post(id, id * 20, 10);
  CHECK(f.receive.resume() == RcEnd::none);
  CHECK(f.receives.reported().size() == 1);
  CHECK(f.come(Octets(all.end() - 5, all.end())) == RcEnd::none);
  CHECK(f.receives.reported().size() == 1);
  CHECK(f.counters.get(Counter::rc_rx_bytes) == all.size());
}

TEST_CASE("rc receive: a Send that is not whole when the stream ends completes its receive") {
  Fixture f;
  f.post(7, 10, 20);
  f.receive.abandon(WcStatus::wr_flush_error);
  CHECK(f.receives.reported().empty());  // there was no Send
  f.receive.start({.crc = false}, true, {});
  f.come(fpdu(Untagged{.last = false, .payload = "ab"}.ulpdu()));
  f.receive.abandon(WcStatus::wr_flush_error);
  CHECK(f.receives.reported().at(0).status == WcStatus::wr_flush_error);
}

TEST_CASE("rc receive: a receive that is given back is the next one on the next stream") {
  Fixture f;
  f.post(7, 10, 20);
  f.post(8, 40, 20);
  f.come(fpdu(Untagged{.last = false, .payload = "ab"}.ulpdu()));
  CHECK(f.receives.next() == 8);
  f.receive.give_back();
  CHECK(f.receives.next() == 7);
  f.receive.start({.crc = false}, true, {});
  CHECK(f.come(send(1, "xyz")) == RcEnd::none);
  CHECK(f.receives.reported().at(0).wr_id == 7);
}

// --- Long FPDUs, which are read directly into memory.

namespace {

/// Memory for a message whose first half comes alone.
struct Long : Fixture {
  // Long enough to be read directly into memory.
  static constexpr ptrdiff_t kRest = kLongFpdu + 100;

  Long() {
    stag = stags.insert({.protection_domain = kDomain,
                         .access = kAllRights,
                         .memory = memory.data(),
                         .length = memory.size()});
    text.assign(2 * kLongFpdu, 'x');
    text.back() = 'z';
  }
  Sge whole() { return {memory.data(), static_cast<uint32_t>(memory.size()), stag}; }
  /// All of it comes but the rest.
  RcEnd begin(const Octets& ulpdu) {
    const Octets bytes = fpdu(ulpdu);
    rest.assign(bytes.end() - kRest, bytes.end());
    return come(Octets(bytes.begin(), bytes.end() - kRest));
  }
  std::vector<std::byte> memory = std::vector<std::byte>(3 * kLongFpdu);
  std::string text;
  STag stag = 0;
  Octets rest;
};

}  // namespace

TEST_CASE("rc receive: the rest of a long Send goes directly into its receive") {
  Long f;
  REQUIRE_FALSE(f.receives.post(1, f.whole()));
  REQUIRE(f.begin(Untagged{.payload = f.text}.ulpdu()) == RcEnd::none);
  CHECK(f.memory[0] == std::byte{'x'});  // though its FPDU is not whole
  CHECK(f.receives.next() == 0);
  CHECK(f.come(f.rest) == RcEnd::none);
  CHECK(f.receives.reported().at(0).byte_count == f.text.size());
  CHECK(f.memory[f.text.size() - 1] == std::byte{'z'});
  CHECK(f.memory[f.text.size()] == std::byte{0});
  CHECK(f.counters.get(Counter::rc_rx_fpdus) == 1);
}

TEST_CASE("rc receive: a receive of which only a part of one FPDU came is the next one again") {
  Long f;
  REQUIRE_FALSE(f.receives.post(1, f.whole()));
  REQUIRE(f.begin(Untagged{.payload = f.text}.ulpdu()) == RcEnd::none);
  f.receive.abandon(WcStatus::wr_flush_error);
  CHECK(f.receives.reported().empty());
  CHECK(f.receives.next() == 1);
}

TEST_CASE("rc receive: memory that goes within a long segment gets no more of it") {
  Long f;
  SECTION("of a Send") {
    REQUIRE_FALSE(f.receives.post(1, f.whole()));
    REQUIRE(f.begin(Untagged{.payload = f.text}.ulpdu()) == RcEnd::none);
    REQUIRE(f.stags.erase(f.stag));
    CHECK(f.come(f.rest) == RcEnd::bad_receive);
    CHECK(f.receive.termination().code() == fault::kLocalCatastrophic);
    CHECK(f.receives.reported().at(0).status == WcStatus::local_protection_error);
  }
  SECTION("of a Write") {
    const Octets ulpdu = write_ulpdu(f.stag, 0, f.text);
    REQUIRE(f.begin(ulpdu) == RcEnd::none);
    REQUIRE(f.stags.erase(f.stag));
    CHECK(f.come(f.rest) == RcEnd::protocol_error);
    CHECK(f.receive.termination().code() == fault::kTaggedInvalidStag);
    CHECK(f.receive.termination().offending_length() == ulpdu.size());
    CHECK(f.receive.termination().offending().size() == 14);
  }
  CHECK(f.memory[f.text.size() - 1] == std::byte{0});
}

TEST_CASE(
    "rc receive: a long Write that does not fit writes nothing, and is checked when it is whole") {
  Long f;
  CHECK(f.begin(write_ulpdu(f.stag, f.memory.size() - 100, f.text)) == RcEnd::none);
  CHECK_FALSE(f.receive.termination().code());
  CHECK(f.come(f.rest) == RcEnd::protocol_error);
  CHECK(f.receive.termination().code() == fault::kTaggedBaseOrBounds);
  CHECK(std::ranges::count(f.memory, std::byte{0}) == static_cast<ptrdiff_t>(f.memory.size()));
}

TEST_CASE("rc receive: a long FPDU through memory of the host is placed as it comes") {
  Long f;
  f.receive.start({.crc = true}, true, {});
  f.stream.sealed = false;
  const Octets bytes = fpdu(write_ulpdu(f.stag, 0, f.text));
  REQUIRE(f.come(Octets(bytes.begin(), bytes.begin() + 100)) == RcEnd::none);
  CHECK(f.memory[0] == std::byte{'x'});
  f.stream.sealed = true;
  const Octets next = fpdu(write_ulpdu(f.stag, 0, "abc"));
  CHECK(f.come(Octets(bytes.begin() + 100, bytes.end()) + next) == RcEnd::bad_crc);
  CHECK(f.memory[0] == std::byte{'x'});
  CHECK(f.counters.get(Counter::rc_rx_fpdus) == 1);
}

TEST_CASE("rc receive: with CRCs nothing of a long FPDU is placed before it is whole") {
  Long f;
  f.receive.start({.crc = true}, true, {});
  const Octets bytes = fpdu(write_ulpdu(f.stag, 0, f.text), true);
  REQUIRE(f.come(Octets(bytes.begin(), bytes.end() - 1)) == RcEnd::none);
  CHECK(f.memory[0] == std::byte{0});
  CHECK(f.come({bytes.back()}) == RcEnd::none);
  CHECK(f.memory[0] == std::byte{'x'});
}
