// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_cursor.h"

#include <array>
#include <cstdint>
#include <optional>

#include "rnic/datagram/rd/forward_list.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace {

using dgram::MessageKind;

/// Requests and Reads as a peer has them, with a cursor over both.
struct Work {
  Work() {
    add_send(250);
    add_send(50);
  }
  void add_send(uint32_t length) {
    const Sge sge{.length = length};
    REQUIRE_FALSE(sends.post({.sges = {&sge, 1}, .destination = Address::parse("192.0.2.1:1")}));
    SendEntry& entry = sends.hand_over();
    requests.push_back(entry);
    cursor.added(entry);
  }
  void add_read(uint32_t index, uint32_t length) {
    InboundRead& read = storage[index];
    read.index = index;
    read.request.length = length;
    reads.push_back(read);
    cursor.added(read);
  }
  /// Cuts what is next, of at most 100 bytes.
  RdPart cut() {
    const std::optional<RdPart> part = cursor.next(sends, 100, 100);
    REQUIRE(part);
    cursor.advance(*part);
    return *part;
  }

  SendQueue sends{{.max_send_wr = 4}, false};
  std::array<InboundRead, 2> storage;
  ForwardList<SendEntry> requests;
  ForwardList<InboundRead> reads;
  RdCursor cursor;
};

}  // namespace

TEST_CASE("rd cursor: requests and responses take turns, each is cut to its end") {
  Work work;
  work.add_read(0, 150);
  const RdPart first = work.cut();
  CHECK(first.tag.message.kind == MessageKind::send);
  CHECK(first.tag.length == 100);
  CHECK(work.cut().tag.message.kind == MessageKind::read_response);
  CHECK(work.cut().tag.offset == 100);
  const RdPart response = work.cut();
  CHECK(response.tag.message.kind == MessageKind::read_response);
  CHECK(response.tag.offset == 100);
  CHECK(response.tag.length == 50);
  const RdPart end = work.cut();
  CHECK(end.tag.object == first.tag.object);
  CHECK(end.tag.offset == 200);
  CHECK(end.tag.length == 50);
  CHECK(work.cut().tag.object != first.tag.object);
  CHECK_FALSE(work.cursor.has_work());
}

TEST_CASE("rd cursor: a request that is removed is not cut on, and a skip goes before all else") {
  Work work;
  work.cut();
  SendEntry& given_up = *work.requests.front();
  CHECK(work.cursor.is_within(given_up));
  work.cursor.close({MessageKind::send, 9});
  work.cursor.remove(given_up);
  work.requests.remove(given_up);
  const RdPart skip = work.cut();
  CHECK(skip.skip);
  CHECK(skip.tag.message == dgram::MessageName{MessageKind::send, 9});
  CHECK(work.cursor.at_beginning(work.requests.front()));
  CHECK(work.cut().tag.length == 50);
  CHECK_FALSE(work.cursor.has_work());
}

TEST_CASE("rd cursor: requests that were cut are cut again from the beginning") {
  Work work;
  work.add_read(0, 150);
  for (int i = 0; i < 5; ++i) work.cut();
  work.cursor.rewind(work.requests.front());
  CHECK(work.cursor.at_beginning(work.requests.front()));
  for (const uint32_t length : {100u, 100u, 50u, 50u}) CHECK(work.cut().tag.length == length);
  CHECK_FALSE(work.cursor.has_work());
}

TEST_CASE(
    "rd cursor: a Read is as many requests as it needs, which keep their MSNs when they are cut "
    "again") {
  Work work;
  SendEntry& read = *work.requests.front();
  read.opcode = WrOpcode::rdma_read;
  read.length = 2 * rdmap::kMaxReadRequest + 1;
  read.in_flight.msn = 7;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 3; ++i) {
      const RdPart request = work.cut();
      CHECK(request.tag.message == dgram::MessageName{MessageKind::read_request, 7 + i});
      CHECK(request.tag.length == (i < 2 ? rdmap::kMaxReadRequest : 1));
    }
    work.cursor.rewind(&read);
  }
}

TEST_CASE("rd cursor: a Read waits for one of the places, and a response does not") {
  Work work;
  for (SendEntry& entry : work.requests) entry.opcode = WrOpcode::rdma_read;
  RdPart request;
  request.tag.message.kind = MessageKind::read_request;  // of no bytes: its Read goes on
  for (uint32_t i = 0; i < dgram::kMaxReadRequests; ++i) work.cursor.advance(request);
  CHECK_FALSE(work.cursor.next(work.sends, 100, 100));
  work.add_read(0, 10);
  CHECK(work.cut().tag.message.kind == MessageKind::read_response);
  CHECK_FALSE(work.cursor.next(work.sends, 100, 100));
  work.cursor.free_place();
  CHECK(work.cut().tag.message.kind == MessageKind::read_request);
  work.cursor.free_all_places();
  CHECK(work.cut().tag.message.kind == MessageKind::read_request);
}
