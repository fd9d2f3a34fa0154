// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_transmit.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>
#include "support/catch.h"

#include "rd_associating.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

using dgram::RdKind;
using State = dgram::Handshake::State;
using Datagrams = std::vector<Sent>;

/// A datagram of a Send with so many bytes of payload: envelope, RD header, header of the segment.
size_t datagram_of(size_t payload) {
  return dgram::Envelope::kPrefixBytes + dgram::kRdHeaderBytes +
         rdmap::segment_header_bytes(rdmap::Opcode::send, false) + payload +
         dgram::Envelope::kTrailerBytes;
}

struct Fixture : Associating {
  explicit Fixture(const provider::QueuePairInit& chosen = rd_init(),
                   size_t memory = size_t{1} << 20)
      : Associating(chosen), sent_memory(memory) {
    std::ranges::copy(bytes_of("0123456789"), canvas.at(0));
  }

  /// The peer has opened an association, and was answered.
  void establish(RdPeer& with, uint16_t window = 100) {
    open_from(with, 1, kPeerIncarnation, window);
    outlet.send(transmit, now);
  }
  RdPeer& add_established(const char* host) {
    RdPeer& added = peers.add(host);
    establish(added);
    return added;
  }
  void post(const SendWorkRequest& request) { REQUIRE_FALSE(sends.queue.post(request)); }
  void post(const RdPeer& to, size_t length, WrOpcode opcode = WrOpcode::send) {
    post(request(to, length, opcode));
  }
  Datagrams fill() { return outlet.fill(transmit, now); }
  Datagrams send() { return outlet.send(transmit, now); }
  /// A burst of which the link takes the first `taken`.
  Datagrams send_first(size_t taken) {
    Datagrams all = fill();
    for (size_t i = taken; i < all.size(); ++i) transmit.unsent(all[i].tag);
    for (size_t i = 0; i < std::min(taken, all.size()); ++i) transmit.sent(all[i].tag);
    return all;
  }
  /// The peer acknowledges all that was sent up to this number.
  void acknowledge(RdPeer& from, uint64_t last, uint16_t window = 100) {
    from.sender().acknowledged(static_cast<uint32_t>(last), window, nullptr, now);
    while (const auto released = from.sender().scoreboard().release())
      if (!released->given_up && released->tag.message.kind == dgram::MessageKind::send)
        requests.acknowledged(from, released->tag);
    peers.table.make_ready(from);
  }
  void acknowledge_all(RdPeer& from, uint16_t window = 100) {
    acknowledge(from, from.sender().window().next() - 1, window);
  }
  /// Datagrams of the peer count as lost, and are sent again in the next burst.
  void lose_first(RdPeer& of) { lose(of, of.sender().window().first_unacknowledged()); }
  void lose(RdPeer& of, uint64_t number) {
    of.sender().scoreboard().recall(number);
    peers.table.make_ready(of);
  }

  MemoryBudget sent_memory;
  RdTransmit transmit{protection, records,      sends.queue, peers.table, requests,
                      responder,  associations, buffer,      sent_memory, counters};
  Outlet outlet;
};

RdKind kind_of(const Sent& sent) { return rd_header(sent).header.kind; }
uint32_t number_of(const Sent& sent) { return rd_header(sent).header.sequence; }

std::vector<RdKind> kinds_of(const Datagrams& all) {
  std::vector<RdKind> kinds;
  for (const Sent& one : all) kinds.push_back(kind_of(one));
  return kinds;
}
std::vector<uint32_t> numbers_of(const Datagrams& all) {
  std::vector<uint32_t> numbers;
  for (const Sent& one : all) numbers.push_back(number_of(one));
  return numbers;
}
std::string joined_text(const Datagrams& all) {
  std::string text;
  for (const Sent& one : all) text += rd_text(one);
  return text;
}

using Kinds = std::vector<RdKind>;

}  // namespace

// --- Opens.

TEST_CASE("rd transmit: a request to a peer without an association has one opened first") {
  Fixture f;
  f.post(f.peer, 3);
  const Datagrams opens = f.send();
  REQUIRE(kinds_of(opens) == Kinds{RdKind::open});
  CHECK(opens[0].to == f.peer.address());
  CHECK(rd_header(opens[0]).header.epoch == f.peer.handshake().epoch());
  CHECK(f.peer.handshake().state() == State::opening);
  CHECK(f.send().empty());  // until the peer answers, or the open's time is over
  f.accept_from(f.peer);
  const Datagrams data = f.send();
  REQUIRE(kinds_of(data) == Kinds{RdKind::data});
  CHECK(rd_text(data[0]) == "012");
}

TEST_CASE("rd transmit: an open that the link did not take is added anew") {
  Fixture f;
  f.post(f.peer, 3);
  CHECK(kinds_of(f.send_first(0)) == Kinds{RdKind::open});
  CHECK(kinds_of(f.send()) == Kinds{RdKind::open});
}

TEST_CASE(
    "rd transmit: a request for which the table has no peer fails, and those after it go on") {
  provider::QueuePairInit one = rd_init();
  one.reliable.max_peers = 1;
  Fixture f(one);
  f.establish(f.peer);
  f.post({.destination = Address::parse("10.0.0.2:7")});
  f.post(f.peer, 3);
  const Datagrams data = f.send();
  REQUIRE(data.size() == 1);
  CHECK(data[0].to == f.peer.address());
  CHECK(f.sends.statuses() == Statuses{WcStatus::retry_exceeded});
}

// --- Data.

TEST_CASE("rd transmit: messages are cut in order, and their datagrams have consecutive numbers") {
  Fixture f;
  f.establish(f.peer);
  f.outlet.set_datagram(datagram_of(4));
  f.post(f.peer, 10);
  f.post(f.peer, 2);
  const auto first = static_cast<uint32_t>(f.peer.sender().window().next());
  const Datagrams data = f.send();
  CHECK(kinds_of(data) == Kinds(4, RdKind::data));
  CHECK(numbers_of(data) == std::vector<uint32_t>{first, first + 1, first + 2, first + 3});
  CHECK(joined_text(data) == "012345678901");
  CHECK(rd_segment(data[2]).last);
  CHECK(rd_segment(data[3]).msn == rd_segment(data[2]).msn + 1);
  CHECK(f.sends.statuses().empty());  // nothing of it is acknowledged
  CHECK(f.send().empty());
}

TEST_CASE("rd transmit: datagrams that the link did not take have the same numbers again") {
  Fixture f;
  f.establish(f.peer);
  f.outlet.set_datagram(datagram_of(4));
  f.post(f.peer, 10);
  const Datagrams planned = f.send_first(1);
  REQUIRE(planned.size() == 3);
  CHECK(f.peer.sender().window().outstanding() == 1);
  const Datagrams rest = f.send();
  CHECK(numbers_of(rest) == std::vector<uint32_t>{number_of(planned[1]), number_of(planned[2])});
  CHECK(joined_text(rest) == "456789");
  CHECK(f.peer.sender().window().outstanding() == 3);
}

TEST_CASE("rd transmit: the peer's window bounds what is under way") {
  Fixture f;
  f.establish(f.peer, 2);
  f.outlet.set_datagram(datagram_of(1));
  f.post(f.peer, 10);
  CHECK(joined_text(f.send()) == "01");
  CHECK(f.send().empty());
  f.acknowledge_all(f.peer, 3);
  CHECK(joined_text(f.send()) == "234");
}

TEST_CASE("rd transmit: peers with something to send take turns in bursts that are full") {
  Fixture f;
  f.establish(f.peer);
  std::vector<RdPeer*> all{&f.peer};
  for (const char* host : {"10.0.0.2", "10.0.0.3", "10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.7",
                           "10.0.0.8", "10.0.0.9", "10.0.0.10"})
    all.push_back(&f.add_established(host));
  f.outlet.set_datagram(datagram_of(1));
  for (const RdPeer* one : all) f.post(*one, 10);
  CHECK(f.send().size() == DatagramBurst::kMaxDatagrams);
  const Datagrams rest = f.send();
  REQUIRE(rest.size() == 10 * all.size() - DatagramBurst::kMaxDatagrams);
  CHECK(rest.front().to == all[9]->address());  // it had no turn yet
  CHECK(rest.back().to == all[8]->address());   // the burst ended within its turn
}

TEST_CASE("rd transmit: a Read is asked for once its request was sent") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 4, WrOpcode::rdma_read);
  f.send_first(0);
  CHECK(f.peer.work.reads.empty());
  const Datagrams asked = f.send();
  REQUIRE(asked.size() == 1);
  const rdmap::DatagramSegment segment = rd_segment(asked[0]);
  CHECK(segment.opcode == rdmap::Opcode::read_request);
  REQUIRE(f.peer.work.reads.front() != nullptr);
  CHECK(f.peer.work.reads.front()->request.sink_stag == segment.request.sink_stag);
  CHECK(f.peer.work.reads.front()->request.length == 4);
  f.lose_first(f.peer);
  const Datagrams again = f.send();
  REQUIRE(again.size() == 1);
  CHECK(rd_segment(again[0]).request.sink_stag == segment.request.sink_stag);
}

// --- Lost datagrams.

TEST_CASE("rd transmit: a lost datagram is sent again with its number, before anything new") {
  Fixture f;
  f.establish(f.peer);
  f.outlet.set_datagram(datagram_of(4));
  f.post(f.peer, 10);
  const Datagrams first = f.send();
  f.lose(f.peer, f.peer.sender().window().first_unacknowledged() + 1);
  f.post(f.peer, 2);
  const Datagrams next = f.send();
  REQUIRE(next.size() == 2);
  CHECK(number_of(next[0]) == number_of(first[1]));
  CHECK(rd_text(next[0]) == "4567");
  CHECK(number_of(next[1]) == number_of(first[2]) + 1);
  CHECK(f.counters.get(Counter::rd_retransmitted) == 1);
  CHECK(f.peer.sender().scoreboard().lost() == 0);
}

TEST_CASE("rd transmit: a lost datagram that the link did not take stays lost") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 3);
  f.send();
  f.lose_first(f.peer);
  f.send_first(0);
  CHECK(f.counters.get(Counter::rd_retransmitted) == 0);
  CHECK(joined_text(f.send()) == "012");
}

TEST_CASE("rd transmit: where the path has narrowed, what is too long is cut anew") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 10);
  REQUIRE(joined_text(f.send()) == "0123456789");
  f.outlet.set_datagram(datagram_of(6));
  f.lose_first(f.peer);
  REQUIRE(kinds_of(f.send()) == Kinds{RdKind::open});
  f.accept_from(f.peer, dgram::kRdRemembersFlag);
  const Datagrams data = f.send();
  CHECK(data.size() == 2);
  CHECK(joined_text(data) == "0123456789");
  CHECK(f.sends.statuses().empty());
}

TEST_CASE("rd transmit: what is too long waits for the datagrams before it") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 1);
  f.post(f.peer, 10);
  REQUIRE(f.send().size() == 2);
  const uint64_t first = f.peer.sender().window().first_unacknowledged();
  f.outlet.set_datagram(datagram_of(6));
  f.lose(f.peer, first + 1);
  CHECK(f.send().empty());
  CHECK(f.peer.signs.blocked());
  CHECK(f.peer.handshake().established());
  f.acknowledge(f.peer, first);
  CHECK(kinds_of(f.send()) == Kinds{RdKind::open});
}

// --- Memory that may not be used.

TEST_CASE("rd transmit: a message whose memory may not be read is not begun, and fails alone") {
  Fixture f;
  f.establish(f.peer);
  f.post({.sges = f.sge(f.region ^ 1, 0, 3), .destination = f.peer.address()});
  f.post(f.peer, 3);
  const Datagrams data = f.send();
  CHECK(joined_text(data) == "012");
  f.acknowledge_all(f.peer);
  CHECK(f.sends.statuses() == Statuses{WcStatus::local_protection_error, WcStatus::success});
}

TEST_CASE("rd transmit: where memory has gone, a skip stands for the number of a lost datagram") {
  Fixture f;
  f.establish(f.peer);
  f.outlet.set_datagram(datagram_of(4));
  f.post(f.peer, 10);
  const Datagrams data = f.send();
  const dgram::MessageName name{dgram::MessageKind::send, rd_segment(data[0]).msn};
  REQUIRE(f.stags.erase(f.region));
  f.lose_first(f.peer);
  const Datagrams again = f.send();
  REQUIRE(kinds_of(again) == Kinds{RdKind::skip});
  CHECK(number_of(again[0]) == number_of(data[0]));
  CHECK(dgram::decode_rd_skip(rd_header(again[0]).rest) == name);
  CHECK(f.sends.statuses() == Statuses{WcStatus::local_protection_error});
}

TEST_CASE("rd transmit: a message whose memory goes before it is cut to its end is closed") {
  Fixture f;
  f.establish(f.peer, 2);
  f.outlet.set_datagram(datagram_of(4));
  f.post(f.peer, 10);
  const Datagrams data = f.send();
  REQUIRE(data.size() == 2);
  const dgram::MessageName name{dgram::MessageKind::send, rd_segment(data[0]).msn};
  REQUIRE(f.stags.erase(f.region));
  f.acknowledge_all(f.peer);
  const Datagrams closing = f.send();
  REQUIRE(kinds_of(closing) == Kinds{RdKind::skip});
  CHECK(number_of(closing[0]) == number_of(data[1]) + 1);
  CHECK(dgram::decode_rd_skip(rd_header(closing[0]).rest) == name);
}

TEST_CASE("rd transmit: a response whose memory has gone is ended by a failure") {
  Fixture f;
  f.establish(f.peer);
  const STag source = f.add(0, 10);
  REQUIRE_FALSE(
      f.responder.take_request(f.peer, {.sink_stag = 5, .length = 4, .source_stag = source}).drop);
  REQUIRE(f.stags.erase(source));
  f.peers.table.make_ready(f.peer);
  const Datagrams sent = f.send();
  REQUIRE(kinds_of(sent) == Kinds{RdKind::failure});
  CHECK(dgram::decode_rd_failure(rd_header(sent[0]).rest).sink_stag == 5);
}

TEST_CASE("rd transmit: a local operation is done when all requests before it are") {
  Fixture f;
  f.establish(f.peer);
  const STag other = f.add(0, 10);
  f.post(f.peer, 3);
  f.post({.opcode = WrOpcode::local_invalidate, .invalidate_stag = other});
  f.post(f.peer, 3);
  CHECK(f.send().size() == 1);
  CHECK(f.protection.find(other)->valid);
  f.acknowledge_all(f.peer);
  CHECK(f.send().size() == 1);
  CHECK_FALSE(f.protection.find(other)->valid);
  CHECK(f.sends.statuses() == Statuses{WcStatus::success, WcStatus::success});
}

// --- Memory that cannot be had.

TEST_CASE("rd transmit: without memory for what is sent a peer tries again after a while") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 3);
  {
    const test::Starvation starvation(1);
    CHECK(f.fill().empty());
  }
  CHECK(f.peer.turn.retry_at() == f.now + kRdMemoryRetry);
  CHECK(f.sends.statuses().empty());
  f.peers.table.make_ready(f.peer);
  CHECK(joined_text(f.send()) == "012");
}

TEST_CASE("rd transmit: while the memory of all peers is used up each has a few under way") {
  Fixture f(rd_init(), 0);
  f.establish(f.peer);
  f.outlet.set_datagram(datagram_of(1));
  for (int i = 0; i < 4; ++i) f.post(f.peer, 10);
  // The congestion window grows to more than these.
  const size_t first = f.send().size();
  f.acknowledge_all(f.peer);
  REQUIRE(f.peer.sender().congestion().window() > dgram::TransmitRing::kUncounted);
  CHECK(first < dgram::TransmitRing::kUncounted);
  CHECK(f.send().size() == dgram::TransmitRing::kUncounted);
  CHECK(f.peer.turn.retry_at() == Time::max());  // an acknowledgement lets it go on
  f.acknowledge_all(f.peer);
  CHECK_FALSE(f.send().empty());
}

// --- Datagrams that the link refuses.

TEST_CASE("rd transmit: a message is cut anew where the link refuses its size, but not for ever") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 3);
  const auto refuse = [&] {
    const Datagrams planned = f.send_first(0);
    REQUIRE(planned.size() == 1);
    f.transmit.refused(planned[0].tag, EMSGSIZE);
  };
  for (int i = 0; i < SizeRefusals::kMost; ++i) refuse();
  CHECK(f.sends.statuses().empty());
  refuse();
  const auto done = f.sends.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::local_qp_operation_error);
  CHECK(done[0].vendor_error == EMSGSIZE);
  CHECK(f.peer.sender().window().idle());
}

TEST_CASE("rd transmit: a datagram that the link refuses for another reason counts as lost") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 3);
  const Datagrams planned = f.send_first(0);
  REQUIRE(planned.size() == 1);
  f.transmit.refused(planned[0].tag, EHOSTUNREACH);
  CHECK(f.peer.sender().window().outstanding() == 1);
  CHECK(f.send().empty());
  f.lose_first(f.peer);
  CHECK(joined_text(f.send()) == "012");
  CHECK(f.sends.statuses().empty());
}

// --- What is sent besides data.

TEST_CASE("rd transmit: an acknowledgement that is due goes alone, unless data carry it") {
  const bool with_data = GENERATE(true, false);
  CAPTURE(with_data);
  Fixture f;
  f.open_from(f.peer);
  if (with_data) f.post(f.peer, 3);
  const Datagrams sent = f.send();
  CHECK(kinds_of(sent) == Kinds{with_data ? RdKind::data : RdKind::acknowledgement});
  CHECK(rd_header(sent.at(0)).header.acknowledged == f.peer.receiver().acknowledged());
  CHECK(f.peer.receiver().due() == dgram::Receiver::Due::nothing);
  CHECK(f.counters.get(Counter::rd_acknowledgements) == (with_data ? 0 : 1));
  CHECK(f.send().empty());
}

TEST_CASE("rd transmit: where datagrams came early an acknowledgement goes beside the data") {
  Fixture f;
  f.establish(f.peer);
  f.come_early(f.peer, "early");
  f.post(f.peer, 3);
  const Datagrams sent = f.send();
  REQUIRE(kinds_of(sent) == Kinds{RdKind::data, RdKind::acknowledgement});
  CHECK(dgram::decode_rd_map(rd_header(sent[1]).rest).test(1));
}

TEST_CASE("rd transmit: a probe names the last datagram, and is sent once") {
  Fixture f;
  f.establish(f.peer);
  f.post(f.peer, 3);
  const Datagrams data = f.send();
  f.peer.signs.want_probe();
  f.peers.table.make_ready(f.peer);
  CHECK(kinds_of(f.send_first(0)) == Kinds{RdKind::probe});
  const Datagrams probes = f.send();
  REQUIRE(kinds_of(probes) == Kinds{RdKind::probe});
  CHECK(number_of(probes[0]) == number_of(data.at(0)));
  CHECK(f.send().empty());
}

TEST_CASE("rd transmit: a reset goes first, and again until the link took or refused it") {
  const bool refuses = GENERATE(true, false);
  CAPTURE(refuses);
  Fixture f;
  f.establish(f.peer);
  const Address stranger = Address::parse("10.0.0.9:7");
  f.transmit.resets().post(stranger, {.kind = RdKind::reset, .sequence = 3});
  f.post(f.peer, 3);
  CHECK(kinds_of(f.send_first(0)) == Kinds{RdKind::reset, RdKind::data});
  const Datagrams planned = f.fill();
  REQUIRE(kinds_of(planned) == Kinds{RdKind::reset, RdKind::data});
  CHECK(planned[0].to == stranger);
  f.transmit.unsent(planned[1].tag);
  refuses ? f.transmit.refused(planned[0].tag, EHOSTUNREACH) : f.transmit.sent(planned[0].tag);
  CHECK(kinds_of(f.send()) == Kinds{RdKind::data});
}

TEST_CASE("rd transmit: a queue pair that begins anew sends no resets of the time before") {
  Fixture f;
  f.transmit.resets().post(Address::parse("10.0.0.9:7"), {.kind = RdKind::reset});
  f.transmit.reset();
  CHECK(f.send().empty());
}
