// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_requests.h"

#include <chrono>
#include <string>
#include <vector>
#include "support/catch.h"

#include "rd_parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

namespace fault = rdmap::fault;
using dgram::MessageKind;
using dgram::MessageName;

struct Fixture : Memory {
  explicit Fixture(ErrorScope scope = ErrorScope::peer) : requests(protection, sends.queue, scope) {
    requests.set_first_msn(1);
  }

  SendEntry& add(const SendWorkRequest& request) {
    REQUIRE_FALSE(sends.queue.post(request));
    SendEntry& entry = sends.queue.hand_over();
    requests.add(peer, entry);
    return entry;
  }
  SendEntry& send(size_t length, WrOpcode opcode = WrOpcode::send) {
    return add({.sges = sge(region, 0, length), .destination = peer.address(), .opcode = opcode});
  }
  SendEntry& read(size_t offset, size_t length) {
    return add({.sges = sge(region, offset, length),
                .destination = peer.address(),
                .opcode = WrOpcode::rdma_read,
                .remote = {.stag = 0xABCD, .offset = 5000}});
  }
  /// A Read Request is sent.
  OutboundRead& ask() {
    REQUIRE(requests.reserve_reads(1));
    const Cut sent = cut(peer, sends.queue);
    REQUIRE(sent.part.tag.message.kind == MessageKind::read_request);
    const STag sink = requests.next_sink();
    requests.add_read(peer, sent.part.tag, sink, sent.sequence);
    for (OutboundRead& read : peer.work.reads)
      if (read.request.sink_stag == sink) return read;
    throw std::runtime_error("no Read");
  }
  std::optional<Counter> respond(STag sink, uint64_t offset, std::string_view text, bool last) {
    rdmap::DatagramSegment segment;
    segment.opcode = rdmap::Opcode::read_response;
    segment.stag = sink;
    segment.tagged_offset = offset;
    segment.payload = bytes_of(text);
    segment.last = last;
    return requests.take_response(peer, segment).drop;
  }
  Statuses statuses() { return sends.statuses(); }

  Receives receives;
  Sends sends;
  STag region = Memory::add(0, Canvas::kSize, Access::local_write);
  Peers peers{receives.buffers.shares()};
  RdPeer& peer = peers.add("10.0.0.1");
  RdRequests requests;
};

}  // namespace

TEST_CASE(
    "rd requests: Sends, Write-Records and Reads count their MSNs apart, beyond 32 bits as well") {
  Fixture f;
  f.requests.set_first_msn(UINT32_MAX);
  CHECK(f.send(1).in_flight.msn == UINT32_MAX);
  CHECK(f.send(1).in_flight.msn == 0);
  CHECK(f.send(1, WrOpcode::write_record).in_flight.msn == UINT32_MAX);
  CHECK(f.read(0, 1).in_flight.msn == UINT32_MAX);
  CHECK(f.read(0, 0).in_flight.msn == 0);
  CHECK(f.read(0, 1).in_flight.msn == 1);
}

TEST_CASE("rd requests: a Read takes as many MSNs as it has requests") {
  constexpr uint64_t kPart = rdmap::kMaxReadRequest;
  Fixture f;
  const auto msn_after = [&](uint64_t length) {
    const uint32_t before =
        f.add({.sges = Sge{f.canvas.at(0), static_cast<uint32_t>(length), f.region},
               .destination = f.peer.address(),
               .opcode = WrOpcode::rdma_read})
            .in_flight.msn;
    return f.read(0, 1).in_flight.msn - before;
  };
  CHECK(msn_after(1) == 1);
  CHECK(msn_after(kPart) == 1);
  CHECK(msn_after(kPart + 1) == 2);
  CHECK(msn_after(2 * kPart) == 2);
}

TEST_CASE("rd requests: a Send is done when its last part is acknowledged") {
  Fixture f;
  f.send(250);
  std::vector<dgram::TxTag> tags;
  for (int i = 0; i < 3; ++i) tags.push_back(cut(f.peer, f.sends.queue).part.tag);
  f.requests.acknowledged(f.peer, tags[0]);
  f.requests.acknowledged(f.peer, tags[1]);
  CHECK(f.statuses().empty());
  CHECK_FALSE(f.requests.take_ended());
  f.requests.acknowledged(f.peer, tags[2]);
  CHECK(f.statuses() == Statuses{WcStatus::success});
  CHECK(f.requests.take_ended());
  CHECK_FALSE(f.requests.take_ended());
  CHECK(f.peer.work.requests.empty());
}

TEST_CASE("rd requests: a Send of no bytes is done with its only datagram") {
  Fixture f;
  f.send(0);
  f.requests.acknowledged(f.peer, cut(f.peer, f.sends.queue).part.tag);
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rd requests: a request that the peer refuses ends with the status that its code means") {
  const auto refused = [](const TerminateCode& code, ErrorScope scope = ErrorScope::peer) {
    Fixture f(scope);
    f.send(1);
    f.requests.refused(f.peer, cut(f.peer, f.sends.queue).part.tag, code);
    CHECK(f.requests.take_fatal() == (scope == ErrorScope::queue_pair));
    CHECK_FALSE(f.requests.take_fatal());
    const Statuses all = f.statuses();
    REQUIRE(all.size() == 1);
    return all[0];
  };
  CHECK(refused(fault::kAccessRights) == WcStatus::remote_access_error);
  CHECK(refused(fault::kTaggedBaseOrBounds) == WcStatus::remote_access_error);
  CHECK(refused(fault::kMessageTooLong) == WcStatus::remote_operation_error);
  CHECK(refused(fault::kStreamCatastrophic) == WcStatus::remote_operation_error);
  CHECK(refused(fault::kBadCrc) == WcStatus::remote_operation_error);
  CHECK(refused(fault::kAccessRights, ErrorScope::queue_pair) == WcStatus::remote_access_error);
}

TEST_CASE("rd requests: a Send that fails in its middle is closed for the peer by a skip") {
  Fixture f;
  SendEntry& entry = f.send(250);
  const MessageName name = message_of(entry);
  const Cut first = cut(f.peer, f.sends.queue);
  f.send(1);
  f.requests.fail(f.peer, entry, WcStatus::remote_operation_error);
  CHECK(f.peer.sender().scoreboard().is_skip(first.sequence));
  const Cut next = cut(f.peer, f.sends.queue);
  CHECK(next.part.skip);
  CHECK(next.part.tag.message == name);
  CHECK_FALSE(cut(f.peer, f.sends.queue).part.skip);
  CHECK(f.statuses() == Statuses{WcStatus::remote_operation_error});
}

TEST_CASE("rd requests: a Send that fails before its first part needs no skip") {
  Fixture f;
  f.requests.fail(f.peer, f.send(250), WcStatus::local_protection_error);
  CHECK_FALSE(f.peer.work.cursor.has_work());
  CHECK(f.requests.take_fatal());  // whatever the scope: it is an error of this side
}

TEST_CASE("rd requests: a Read Request asks for its part of the Read, from a sink of its own") {
  Fixture f;
  f.read(10, 9);
  const OutboundRead& read = f.ask();
  CHECK(read.request.length == 9);
  CHECK(read.request.source_stag == 0xABCD);
  CHECK(read.request.source_offset == 5000);
  CHECK(read.request.sink_stag != f.region);
  CHECK(&f.requests.read(read.index) == &read);
}

TEST_CASE("rd requests: a response is placed in order, and its last byte ends the Read") {
  Fixture f;
  f.read(10, 6);
  const STag sink = f.ask().request.sink_stag;
  CHECK_FALSE(f.respond(sink, 0, "abc", false));
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.statuses().empty());
  CHECK_FALSE(f.respond(sink, 3, "def", true));
  CHECK(f.canvas.has_only(10, "abcdef"));
  const auto done = f.sends.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
  CHECK(done[0].validity.complete());
  CHECK(f.peer.work.reads.empty());
  CHECK(f.respond(sink, 0, "xyz", false) == Counter::drop_response);
}

TEST_CASE(
    "rd requests: a response that leaves its order, or its end, fails the Read and writes "
    "nothing") {
  struct Wrong {
    uint64_t offset;
    const char* text;
    bool last;
  };
  for (const Wrong& wrong : {Wrong{1, "abc", false}, Wrong{0, "abcdefg", false},
                             Wrong{0, "abc", true}, Wrong{0, "abcdef", false}}) {
    CAPTURE(wrong.offset, wrong.text, wrong.last);
    Fixture f;
    f.read(10, 6);
    CHECK(f.respond(f.ask().request.sink_stag, wrong.offset, wrong.text, wrong.last) ==
          Counter::drop_response);
    CHECK(f.canvas.untouched());
    CHECK(f.statuses() == Statuses{WcStatus::bad_response_error});
  }
}

TEST_CASE("rd requests: the rest of a response that is not wanted any more frees its place") {
  Fixture f;
  SendEntry& entry = f.read(10, 6);
  const STag sink = f.ask().request.sink_stag;
  f.requests.fail(f.peer, entry, WcStatus::remote_operation_error);
  CHECK_FALSE(f.peer.work.reads.empty());  // it is answered all the same
  CHECK(f.respond(sink, 0, "abc", false) == Counter::drop_response);
  CHECK_FALSE(f.peer.work.reads.empty());
  CHECK(f.respond(sink, 3, "def", true) == Counter::drop_response);
  CHECK(f.peer.work.reads.empty());
  CHECK(f.canvas.untouched());
}

TEST_CASE("rd requests: memory that goes between two segments of a response fails the Read") {
  Fixture f;
  f.read(10, 6);
  const STag sink = f.ask().request.sink_stag;
  REQUIRE_FALSE(f.respond(sink, 0, "abc", false));
  REQUIRE(f.stags.erase(f.region));
  CHECK_FALSE(f.respond(sink, 3, "def", true));
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.statuses() == Statuses{WcStatus::local_protection_error});
  CHECK(f.requests.take_fatal());
  CHECK(f.peer.work.reads.empty());
}

TEST_CASE(
    "rd requests: a response of which a part was skipped ends with a failure, which says why") {
  Fixture f;
  f.read(10, 6);
  const STag sink = f.ask().request.sink_stag;
  REQUIRE_FALSE(f.respond(sink, 0, "abc", false));
  f.requests.take_skip(f.peer, sink);
  CHECK(f.respond(sink, 3, "def", true) == Counter::drop_response);
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.statuses().empty());
  f.requests.take_failure(f.peer, sink ^ 1, fault::kAccessRights);  // of nothing here
  CHECK(f.statuses().empty());
  f.requests.take_failure(f.peer, sink, fault::kAccessRights);
  CHECK(f.statuses() == Statuses{WcStatus::remote_access_error});
  CHECK(f.peer.work.reads.empty());
}

TEST_CASE("rd requests: a refusal of a Read Request frees its place, and ends its Read") {
  Fixture f;
  f.read(10, 6);
  const OutboundRead& read = f.ask();
  dgram::TxTag tag{.message = {MessageKind::read_request, read.msn}, .object = read.index};
  f.requests.refused(f.peer, tag, fault::kInvalidStag);
  CHECK(f.statuses() == Statuses{WcStatus::remote_access_error});
  CHECK(f.peer.work.reads.empty());
}

TEST_CASE("rd requests: a Read waits for all of its requests") {
  constexpr uint32_t kPart = rdmap::kMaxReadRequest;
  Fixture f;
  std::vector<std::byte> memory(size_t{kPart} + 3);
  const STag stag = f.stags.insert({.protection_domain = kDomain,
                                    .access = Access::local_write,
                                    .memory = memory.data(),
                                    .length = memory.size()});
  f.add({.sges = Sge{memory.data(), static_cast<uint32_t>(memory.size()), stag},
         .destination = f.peer.address(),
         .opcode = WrOpcode::rdma_read});
  const STag first = f.ask().request.sink_stag;
  const OutboundRead& second = f.ask();
  const STag sink = second.request.sink_stag;
  CHECK(second.begin == kPart);
  CHECK(second.request.length == 3);
  CHECK_FALSE(f.respond(sink, 0, "end", true));
  CHECK(f.statuses().empty());
  CHECK_FALSE(f.respond(first, 0, std::string(kPart, 'x'), true));
  CHECK(f.statuses() == Statuses{WcStatus::success});
  CHECK(memory[kPart - 1] == std::byte{'x'});
  CHECK(memory[kPart] == std::byte{'e'});
}

TEST_CASE("rd requests: all of a peer's requests fail together, in their order") {
  Fixture f(ErrorScope::queue_pair);
  f.requests.fail_all(f.peer, WcStatus::retry_exceeded);
  CHECK_FALSE(f.requests.fatal());  // there were none
  f.read(0, 6);
  f.send(10);
  f.ask();
  f.requests.fail_all(f.peer, WcStatus::retry_exceeded);
  CHECK(f.statuses() == Statuses{WcStatus::retry_exceeded, WcStatus::retry_exceeded});
  CHECK(f.requests.fatal());
  CHECK(f.peer.work.reads.empty());
  CHECK_FALSE(f.peer.work.cursor.has_work());
}

TEST_CASE("rd requests: a message begun anew is cut from its beginning, with the MSN it had") {
  Fixture f;
  f.read(10, 6);
  SendEntry& send = f.send(250);
  const uint32_t msn = send.in_flight.msn;
  const STag sink = f.ask().request.sink_stag;
  cut(f.peer, f.sends.queue);
  REQUIRE_FALSE(f.respond(sink, 0, "abc", false));
  f.requests.rewind(f.peer);
  CHECK(f.respond(sink, 3, "def", true) == Counter::drop_response);
  const STag again = f.ask().request.sink_stag;
  CHECK(again != sink);
  const Cut first = cut(f.peer, f.sends.queue);
  CHECK(first.part.tag.offset == 0);
  CHECK(first.part.tag.message == MessageName{MessageKind::send, msn});
  CHECK_FALSE(f.respond(again, 0, "ABCDEF", true));
  CHECK(f.canvas.has_only(10, "ABCDEF"));
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rd requests: work may be repeated while its first part cannot have been delivered") {
  Fixture f;
  CHECK(f.requests.can_repeat(f.peer, kNow));
  f.send(250);
  CHECK(f.requests.can_repeat(f.peer, kNow));
  cut(f.peer, f.sends.queue);
  CHECK(f.requests.can_repeat(f.peer, kNow + 499ms));
  CHECK_FALSE(f.requests.can_repeat(f.peer, kNow + 500ms));
}

TEST_CASE("rd requests: only Reads may be done twice without harm") {
  Fixture f;
  CHECK(only_reads(f.peer));
  f.read(0, 6);
  CHECK(only_reads(f.peer));
  f.send(1);
  CHECK_FALSE(only_reads(f.peer));
}

TEST_CASE("rd requests: Sends need memory that may be read, and Reads such that may be written") {
  Fixture f;
  const STag readable = f.Memory::add(0, 100, Access::none);
  const auto has_memory = [&](WrOpcode opcode, STag stag, SendFlags flags = SendFlags::signaled) {
    return f.requests.has_memory(f.add({.sges = f.sge(stag, 0, 8),
                                        .flags = flags,
                                        .destination = f.peer.address(),
                                        .opcode = opcode}));
  };
  CHECK(has_memory(WrOpcode::send, readable));
  CHECK(has_memory(WrOpcode::write_record, readable));
  CHECK_FALSE(has_memory(WrOpcode::rdma_read, readable));
  CHECK(has_memory(WrOpcode::rdma_read, f.region));
  CHECK_FALSE(has_memory(WrOpcode::send, readable ^ 1));
  CHECK(has_memory(WrOpcode::send, readable ^ 1, SendFlags::signaled | SendFlags::inline_data));
}

TEST_CASE("rd msns: each kind of message counts its own, and a Read one for each Read Request") {
  RdMsns msns;
  msns.start(UINT32_MAX);
  SendEntry entry;
  CHECK(msns.take(entry) == UINT32_MAX);
  CHECK(msns.take(entry) == 0);
  entry.opcode = WrOpcode::rdma_read;
  entry.length = uint64_t{2} * rdmap::kMaxReadRequest + 1;
  CHECK(msns.take(entry) == UINT32_MAX);
  entry.length = 0;
  CHECK(msns.take(entry) == 2);
  CHECK(msns.take(entry) == 3);
  entry.opcode = WrOpcode::write_record;
  CHECK(msns.take(entry) == UINT32_MAX);
}
