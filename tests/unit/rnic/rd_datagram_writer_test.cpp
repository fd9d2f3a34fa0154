// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_datagram_writer.h"

#include <algorithm>
#include <functional>
#include <vector>
#include "support/catch.h"

#include "dgram/reorder_buffer.h"
#include "rd_parts.h"
#include "rnic/datagram/rd/rd_resets.h"
#include "rnic/datagram/rd/rd_responder.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

using Act = RdPlanned::Act;
using dgram::MessageKind;
using dgram::RdKind;

/// Fills bursts as the case says.
struct Source final : DatagramSource {
  void fill(DatagramBuilder& builder, Time) override { with(builder); }
  void sent(const DatagramTag&) override {}
  void refused(const DatagramTag&, int) override {}

  std::function<void(DatagramBuilder&)> with;
};

struct Fixture : Memory {
  /// What `write` adds to a burst to the peer.
  std::vector<Sent> write(const std::function<void(RdPeerBurst&)>& write) {
    source.with = [&](DatagramBuilder& builder) {
      writer.begin(builder);
      RdPeerBurst burst{.peer = peer, .builder = builder, .now = kNow, .names = {}, .body = 1000};
      write(burst);
      added = burst.planned;
    };
    return outlet.fill(source, kNow);
  }

  Counters counters;
  Receives receives;
  Sends sends;
  STag region = add(0, Canvas::kSize);
  Peers peers{receives.buffers.shares()};
  RdPeer& peer = peers.add("10.0.0.1");
  RdRequests requests{protection, sends.queue, ErrorScope::peer};
  RdResponder responder{protection, counters};
  dgram::ReorderBuffer buffer{1 << 16};
  Source source;
  RdDatagramWriter writer{protection, sends.queue, requests, responder, buffer, source};
  Outlet outlet;
  size_t added = 0;
};

}  // namespace

TEST_CASE("rd datagram writer: segments of a message in any order carry their own bytes") {
  Fixture f;
  std::ranges::copy(bytes_of("abcdefghij"), f.canvas.at(0));
  const SgeList two = {f.sge(f.region, 0, 4), f.sge(f.region, 4, 6)};
  REQUIRE_FALSE(f.sends.queue.post({.sges = two, .destination = f.peer.address()}));
  SendEntry& entry = f.sends.queue.hand_over();
  f.requests.add(f.peer, entry);
  const auto part = [&](uint32_t offset, uint32_t length) {
    return RdPart{.tag = {{MessageKind::send, entry.in_flight.msn}, 0, offset, length}};
  };
  const auto sent = f.write([&](RdPeerBurst& burst) {
    CHECK_FALSE(f.writer.is_cutting(entry));
    CHECK(f.writer.add_sequenced(burst, {.act = Act::fresh, .sequence = 7, .part = part(0, 3)}));
    CHECK(f.writer.is_cutting(entry));
    CHECK(f.writer.add_sequenced(burst, {.act = Act::fresh, .sequence = 8, .part = part(3, 3)}));
    CHECK(f.writer.add_sequenced(burst, {.act = Act::again, .sequence = 5, .part = part(1, 4)}));
  });
  REQUIRE(sent.size() == 3);
  CHECK(f.added == 3);
  CHECK(rd_text(sent[0]) == "abc");
  CHECK(rd_text(sent[1]) == "def");
  CHECK(rd_text(sent[2]) == "bcde");
  CHECK(rd_header(sent[2]).header.sequence == 5);
  CHECK(f.writer.planned(sent[2].tag).act == Act::again);
  CHECK(f.writer.planned(sent[1].tag).sequence == 8);
  CHECK(f.writer.planned(sent[1].tag).peer == &f.peer);
}

TEST_CASE("rd datagram writer: a skip stands for a message, and names it") {
  Fixture f;
  const RdPart part{.tag = {.message = {MessageKind::write_record, 9}}, .skip = true};
  const auto sent = f.write([&](RdPeerBurst& burst) {
    CHECK(f.writer.add_sequenced(burst, {.act = Act::fresh, .sequence = 3, .part = part}));
  });
  REQUIRE(sent.size() == 1);
  const auto parsed = rd_header(sent[0]);
  CHECK(parsed.header.kind == RdKind::skip);
  CHECK(parsed.header.sequence == 3);
  CHECK(dgram::decode_rd_skip(parsed.rest) == part.tag.message);
}

TEST_CASE(
    "rd datagram writer: an acknowledgement says that the next datagram waits, or is refused") {
  Fixture f;
  const auto written = [&] {
    const auto sent = f.write([&](RdPeerBurst& burst) { f.writer.add_acknowledgement(burst); });
    REQUIRE(sent.size() == 1);
    return rd_header(sent[0]).header;
  };
  CHECK(written().kind == RdKind::acknowledgement);
  CHECK_FALSE(written().waits());
  f.peer.turn.hold();
  CHECK(written().waits());
  f.peer.turn.begin_refusal();
  CHECK(written().kind == RdKind::refusal);
  CHECK(written().sequence == written().acknowledged + 1);
}

TEST_CASE("rd resets: as many wait as may, each until it was sent, and further ones are left out") {
  Fixture f;
  RdResets resets(f.counters);
  const Address to = Address::parse("10.0.0.2:7");
  for (uint32_t i = 0; i < RdResets::kMaxResets + 3; ++i)
    resets.post({to}, {.kind = RdKind::reset, .sequence = i});
  CHECK(f.counters.get(Counter::rd_resets_limited) == 3);
  RdBurstPlan plan;
  f.source.with = [&](DatagramBuilder& builder) {
    plan.begin(builder);
    resets.fill(builder, plan, f.source);
  };
  const auto sent = f.outlet.fill(f.source, kNow);
  REQUIRE(sent.size() == RdResets::kMaxResets);
  CHECK(sent[5].to == to);
  CHECK(rd_header(sent[5]).header.sequence == 5);
  CHECK(plan.at(5).act == Act::reset);
  resets.remove_first();
  CHECK(rd_header(f.outlet.fill(f.source, kNow).at(0)).header.sequence == 1);
  resets.clear();
  CHECK(resets.empty());
}
