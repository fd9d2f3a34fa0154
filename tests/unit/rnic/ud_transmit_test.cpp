// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_transmit.h"

#include <cerrno>
#include <string>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "rnic/datagram/record_table.h"
#include "rnic/datagram/ud/ud_reader.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

const Address kPeer = Address::parse("10.0.0.1:7");
const Address kOther = Address::parse("10.0.0.2:7");

/// A datagram of a Send with so many bytes of payload: 8 + 18 + 4 besides these.
constexpr size_t datagram_of(size_t payload) { return 30 + payload; }

struct Fixture : Memory {
  explicit Fixture(uint32_t reads = 16) : read_options{.max_outstanding = reads} {
    transmit.set_first_msn(100);
    const std::string_view text = "0123456789";
    std::copy_n(bytes_of(text).begin(), text.size(), canvas.at(0));
  }

  void post(SendWorkRequest request) {
    if (!request.destination.port()) request.destination = kPeer;
    REQUIRE_FALSE(sends.queue.post(request));
  }
  void send(size_t offset, size_t length) { post({.sges = sge(region, offset, length)}); }
  std::vector<Sent> sent() { return outlet.send(transmit, kNow); }
  std::vector<Sent> filled() { return outlet.fill(transmit, kNow); }

  Counters counters;
  Receives receives;
  Sends sends;
  STag region = add(0, Canvas::kSize);
  dgram::Identity identity{SipKey{3, 4}};
  RecordTable records{{protection, receives.buffers, receives.cq, counters}, {}, true};
  ReadOptions read_options;
  CountingWaker waker;
  UdReader reader{protection, sends.queue, identity, counters, read_options, 8, waker};
  UdTransmit transmit{protection, records, sends.queue, reader};
  Outlet outlet;
};

}  // namespace

TEST_CASE("ud transmit: a Send is cut into datagrams, which say what message they are of") {
  Fixture f;
  f.outlet.set_datagram(datagram_of(4));
  f.post({.sges = f.sge(f.region, 0, 10), .q_key = 0x51});
  const auto sent = f.sent();
  REQUIRE(sent.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    const auto segment = sent[i].segment();
    CHECK(segment.opcode == rdmap::Opcode::send);
    CHECK(segment.msn == 100);
    CHECK(segment.q_key == 0x51);
    CHECK(segment.message_offset == 4 * i);
    CHECK(segment.last == (i == 2));
  }
  CHECK(std::string(sent[0].text()) + std::string(sent[1].text()) + std::string(sent[2].text()) ==
        "0123456789");
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("ud transmit: a Send of no bytes is one datagram") {
  Fixture f;
  f.post({});
  const auto sent = f.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].segment().last);
  CHECK(sent[0].text().empty());
}

TEST_CASE("ud transmit: messages are gathered over the borders of their lists") {
  Fixture f;
  f.outlet.set_datagram(datagram_of(3));
  f.post({.sges = {f.sge(f.region, 0, 2), f.sge(f.region, 5, 0), f.sge(f.region, 8, 2)}});
  const auto sent = f.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].text() == "018");
  CHECK(sent[1].text() == "9");
}

TEST_CASE("ud transmit: Sends and Write-Records count their MSNs apart, beyond 32 bits") {
  Fixture f;
  f.transmit.set_first_msn(UINT32_MAX);
  for (int i = 0; i < 2; ++i) {
    f.send(0, 1);
    f.post({.sges = f.sge(f.region, 0, 1), .opcode = WrOpcode::write_record});
  }
  const auto sent = f.sent();
  REQUIRE(sent.size() == 4);
  CHECK(sent[0].segment().msn == UINT32_MAX);
  CHECK(sent[1].segment().msn == UINT32_MAX);
  CHECK(sent[2].segment().msn == 0);
  CHECK(sent[3].segment().msn == 0);
}

TEST_CASE("ud transmit: each segment of a Write-Record tells of the whole message") {
  Fixture f;
  f.outlet.set_datagram(8 + 14 + 12 + 8 + 4 + 4);  // with immediate data
  f.post({.sges = f.sge(f.region, 0, 6),
          .flags = SendFlags::signaled | SendFlags::solicited,
          .opcode = WrOpcode::write_record,
          .remote = {.stag = 0xABCD, .offset = UINT64_MAX - 6},
          .immediate = 99});
  const auto sent = f.sent();
  REQUIRE(sent.size() == 2);
  for (size_t i = 0; i < 2; ++i) {
    const auto segment = sent[i].segment();
    CHECK(segment.stag == 0xABCD);
    CHECK(segment.tagged_offset == UINT64_MAX - 6 + 4 * i);
    CHECK(segment.message_offset == 4 * i);
    CHECK(segment.message_length == 6);
    CHECK(segment.solicited());
    CHECK(segment.immediate == 99);
  }
}

TEST_CASE("ud transmit: datagrams that the link did not take are added anew, from there on") {
  Fixture f;
  f.outlet.set_datagram(datagram_of(4));
  f.send(0, 10);
  f.send(0, 1);
  const auto planned = f.filled();
  REQUIRE(planned.size() == 4);
  f.transmit.sent(planned[0].tag);
  const auto rest = f.sent();
  REQUIRE(rest.size() == 3);
  CHECK(rest[0].segment().message_offset == 4);
  CHECK(rest[0].segment().msn == 100);
  CHECK(rest[2].segment().msn == 101);
  CHECK(f.sends.statuses() == Statuses{WcStatus::success, WcStatus::success});
}

TEST_CASE("ud transmit: memory that may not be read fails its message alone, in its turn") {
  Fixture f;
  f.send(0, 1);
  f.post({.sges = f.sge(f.region ^ 1, 0, 1)});
  f.send(2, 1);
  CHECK(f.sent().size() == 1);
  const auto sent = f.sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].text() == "2");
  CHECK(f.sends.statuses() ==
        Statuses{WcStatus::success, WcStatus::local_protection_error, WcStatus::success});
}

TEST_CASE("ud transmit: memory that goes between two bursts ends the message there") {
  Fixture f;
  f.outlet.set_datagram(datagram_of(4));
  f.send(0, 10);
  f.transmit.sent(f.filled()[0].tag);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.sent().empty());
  CHECK(f.sends.statuses() == Statuses{WcStatus::local_protection_error});
  f.region = f.add(0, 100);
  f.send(0, 1);
  CHECK(f.sent().at(0).segment().message_offset == 0);
}

TEST_CASE("ud transmit: data that were copied when they were posted need no region") {
  Fixture f;
  f.post({.sges = f.sge(0, 3, 2), .flags = SendFlags::signaled | SendFlags::inline_data});
  f.canvas.wipe();
  CHECK(f.sent().at(0).text() == "34");
}

TEST_CASE("ud transmit: a Read has its turn, and is the reader's then") {
  Fixture f(1);
  f.send(0, 1);
  f.post({.sges = f.sge(f.region, 0, 4), .opcode = WrOpcode::rdma_read});
  f.send(1, 1);
  CHECK(f.sent().size() == 1);
  CHECK(f.reader.under_way() == 0);
  CHECK(f.sent().size() == 1);  // the Send after it does not wait for its response
  CHECK(f.reader.under_way() == 1);
  f.post({.sges = f.sge(f.region, 0, 4), .opcode = WrOpcode::rdma_read});
  f.send(2, 1);
  CHECK(f.sent().empty());  // no other Read may be under way, so it waits with all after it
  f.reader.reset();
  CHECK(f.sent().size() == 1);
}

TEST_CASE("ud transmit: a Read into memory that may not be written fails at once") {
  Fixture f;
  const STag closed = f.add(0, 10, Access::remote_read);
  f.post({.sges = f.sge(closed, 0, 4), .opcode = WrOpcode::rdma_read});
  CHECK(f.sent().empty());
  CHECK(f.sends.statuses() == Statuses{WcStatus::local_protection_error});
  CHECK(f.reader.under_way() == 0);
}

TEST_CASE("ud transmit: a local operation is done after the messages before it are out") {
  Fixture f;
  const STag other = f.add(0, 10);
  f.post({.sges = f.sge(other, 0, 1)});
  f.post({.opcode = WrOpcode::local_invalidate, .invalidate_stag = other});
  f.post({.sges = f.sge(other, 0, 1)});
  const auto planned = f.filled();
  REQUIRE(planned.size() == 1);
  CHECK(f.protection.find(other)->valid);
  f.transmit.sent(planned[0].tag);
  CHECK(f.sent().empty());
  CHECK_FALSE(f.protection.find(other)->valid);
  CHECK(f.sends.statuses() ==
        Statuses{WcStatus::success, WcStatus::success, WcStatus::local_protection_error});
}

TEST_CASE("ud transmit: a refusal of the link fails the message with its errno, and it alone") {
  Fixture f;
  f.send(0, 1);
  f.send(1, 1);
  f.transmit.refused(f.filled()[0].tag, EHOSTUNREACH);
  const auto done = f.sends.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::local_qp_operation_error);
  CHECK(done[0].vendor_error == EHOSTUNREACH);
  const auto next = f.sent();
  REQUIRE(next.size() == 1);
  CHECK(next[0].segment().msn == 101);
}

TEST_CASE("ud transmit: a message is cut anew where the path carries less, but not for ever") {
  Fixture f;
  f.send(0, 10);
  for (int i = 0; i < SizeRefusals::kMost; ++i) f.transmit.refused(f.filled()[0].tag, EMSGSIZE);
  CHECK(f.sends.statuses().empty());
  f.outlet.set_datagram(datagram_of(4));
  f.transmit.sent(f.filled()[0].tag);  // so that the count begins anew
  for (int i = 0; i < SizeRefusals::kMost; ++i) f.transmit.refused(f.filled()[0].tag, EMSGSIZE);
  CHECK(f.sends.statuses().empty());
  f.transmit.refused(f.filled()[0].tag, EMSGSIZE);
  CHECK(f.sends.statuses() == Statuses{WcStatus::local_qp_operation_error});
}

TEST_CASE("ud transmit: messages for several peers share a burst, in the order of posting") {
  Fixture f;
  f.send(0, 1);
  f.post({.sges = f.sge(f.region, 1, 1), .destination = kOther});
  const auto sent = f.sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].to == kPeer);
  CHECK(sent[1].to == kOther);
  CHECK(sent[0].opened().labels.incarnation != sent[1].opened().labels.incarnation);
}
