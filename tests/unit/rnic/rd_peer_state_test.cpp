// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_peer_state.h"

#include <array>
#include <chrono>
#include <vector>

#include "rnic/datagram/rd/forward_list.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;

namespace {

using dgram::MessageKind;
using dgram::MessageName;

struct Item {
  Item* next = nullptr;
  int value = 0;
};

std::vector<int> values(const ForwardList<Item>& list) {
  std::vector<int> all;
  for (const Item& item : list) all.push_back(item.value);
  return all;
}

constexpr Time kNow{1000s};

rdmap::DatagramSegment send_segment(uint32_t msn) {
  rdmap::DatagramSegment segment;
  segment.opcode = rdmap::Opcode::send;
  segment.msn = msn;
  return segment;
}

/// A segment of a Write-Record.
rdmap::DatagramSegment record_segment(uint32_t msn, uint32_t offset, size_t bytes,
                                      bool last = false) {
  static constexpr std::array<std::byte, 64> kBytes{};
  rdmap::DatagramSegment segment;
  segment.opcode = rdmap::Opcode::write_record;
  segment.last = last;
  segment.msn = msn;
  segment.message_offset = offset;
  segment.payload = ConstBytes(kBytes).first(bytes);
  return segment;
}

}  // namespace

TEST_CASE("a forward list keeps its order whatever is removed") {
  std::array<Item, 3> items{};
  for (int i = 0; i < 3; ++i) items[static_cast<size_t>(i)].value = i;
  for (size_t removed = 0; removed < items.size(); ++removed) {
    CAPTURE(removed);
    ForwardList<Item> list;
    CHECK(list.empty());
    for (Item& item : items) list.push_back(item);
    list.remove(items[removed]);
    std::vector<int> expected{0, 1, 2};
    expected.erase(expected.begin() + static_cast<ptrdiff_t>(removed));
    CHECK(values(list) == expected);
    list.push_back(items[removed]);
    expected.push_back(static_cast<int>(removed));
    CHECK(values(list) == expected);
    while (Item* const first = list.front()) list.remove(*first);
    CHECK(list.empty());
    list.push_back(items[0]);
    CHECK(values(list) == std::vector<int>{0});
  }
}

TEST_CASE(
    "rd state: a Send that is given up for want of progress has a name until the next begins") {
  RdInbound inbound;
  ReceiveEntry receive{};
  inbound.begin_message(receive, send_segment(7), kNow);
  CHECK(inbound.has_message());
  inbound.placed(100, kNow + 1s);
  CHECK(inbound.message().placed == 100);
  CHECK(inbound.message().last_progress == kNow + 1s);
  inbound.expire_message();
  CHECK(inbound.end_message() == &receive);
  CHECK_FALSE(inbound.has_message());
  CHECK(inbound.has_expired({MessageKind::send, 7}));
  CHECK_FALSE(inbound.has_expired({MessageKind::write_record, 7}));
  inbound.begin_message(receive, send_segment(8), kNow);
  CHECK_FALSE(inbound.has_expired({MessageKind::send, 7}));
}

TEST_CASE("rd state: only what the association before delivered counts as repeated") {
  RdInbound inbound;
  inbound.repeats().delivered_send(100);
  CHECK_FALSE(inbound.repeats().repeats_send(100));  // in the same association it is a duplicate
  inbound.association_ended();
  CHECK(inbound.repeats().may_repeat());
  CHECK(inbound.repeats().repeats_send(100));
  CHECK(inbound.repeats().repeats_send(99));
  CHECK_FALSE(inbound.repeats().repeats_send(101));
  // The first new one ends it.
  CHECK_FALSE(inbound.repeats().repeats_send(100));
  CHECK_FALSE(inbound.repeats().may_repeat());
}

TEST_CASE("rd state: MSNs that wrap are repeated ones up to a bound") {
  RdInbound inbound;
  inbound.repeats().delivered_send(3);
  inbound.association_ended();
  CHECK(inbound.repeats().repeats_send(UINT32_MAX));
  CHECK(inbound.repeats().repeats_send(3 - (RdRepeats::kMostRepeated - 1)));
  CHECK_FALSE(inbound.repeats().repeats_send(3 - RdRepeats::kMostRepeated));
}

TEST_CASE("rd state: another incarnation repeats nothing") {
  RdInbound inbound;
  inbound.repeats().delivered_send(100);
  inbound.association_ended();
  inbound.repeats().incarnation_replaced();
  CHECK_FALSE(inbound.repeats().repeats_send(100));
}

TEST_CASE("rd state: of a record's segments that are cut otherwise, only the rest is news") {
  RdInbound inbound;
  CHECK(inbound.repeats().reported_of(record_segment(7, 0, 20)) == size_t{0});
  inbound.repeats().reported_segment(record_segment(7, 0, 20));
  CHECK_FALSE(inbound.repeats().reported_of(record_segment(7, 0, 20)));
  CHECK_FALSE(inbound.repeats().reported_of(record_segment(7, 10, 10)));
  CHECK(inbound.repeats().reported_of(record_segment(7, 10, 30)) == size_t{10});
  CHECK(inbound.repeats().reported_of(record_segment(7, 20, 10)) == size_t{0});
  CHECK(inbound.repeats().reported_of(record_segment(8, 0, 20)) == size_t{0});
  inbound.repeats().incarnation_replaced();
  CHECK(inbound.repeats().reported_of(record_segment(7, 0, 20)) == size_t{0});
}

TEST_CASE("rd state: an empty segment that ends a record is reported once") {
  RdInbound inbound;
  inbound.repeats().reported_segment(record_segment(7, 0, 20));
  const auto end = record_segment(7, 20, 0, true);
  CHECK(inbound.repeats().reported_of(end) == size_t{0});
  inbound.repeats().reported_segment(end);
  CHECK_FALSE(inbound.repeats().reported_of(end));
}

TEST_CASE("rd state: records before the last reported one are repeated in another association") {
  RdInbound inbound;
  inbound.repeats().reported_segment(record_segment(1, 0, 20, true));
  CHECK(inbound.repeats().reported_of(record_segment(0xffffffff, 0, 20)) == size_t{0});
  inbound.association_ended();
  CHECK_FALSE(inbound.repeats().reported_of(record_segment(0xffffffff, 0, 20)));
  CHECK(inbound.repeats().reported_of(record_segment(2, 0, 20)) == size_t{0});
  CHECK(inbound.repeats().reported_of(record_segment(1 - RdRepeats::kMostRepeated, 0, 20)) ==
        size_t{0});
  inbound.repeats().new_message();
  CHECK(inbound.repeats().reported_of(record_segment(0xffffffff, 0, 20)) == size_t{0});
}

TEST_CASE("rd state: the rest of one message is ignored at a time, until the association ends") {
  RdInbound inbound;
  inbound.ignore_rest({MessageKind::send, 5});
  CHECK(inbound.ignores({MessageKind::send, 5}));
  CHECK_FALSE(inbound.ignores({MessageKind::send, 6}));
  CHECK_FALSE(inbound.ignores({MessageKind::write_record, 5}));
  inbound.association_ended();
  CHECK_FALSE(inbound.ignores({MessageKind::send, 5}));
}

TEST_CASE("rd state: a peer that is held or being refused is not delivered to") {
  RdTurn turn;
  CHECK(turn.may_deliver());
  turn.begin_refusal();
  CHECK_FALSE(turn.may_deliver());
  turn.end_refusal();
  turn.hold();
  turn.wait_for_memory(kNow);
  turn.wait_for_memory(kNow + 5ms);  // the earlier time counts
  CHECK(turn.retry_at() == kNow + kRdMemoryRetry);
  CHECK_FALSE(turn.may_deliver());
  turn.resume();
  CHECK(turn.may_deliver());
  CHECK(turn.retry_at() == Time::max());
}

TEST_CASE("rd state: work is begun anew a few times in a row, unless some of it gets through") {
  RdRewinds rewinds;
  for (int i = 0; i < RdRewinds::kMost; ++i) CHECK(rewinds.begin_anew(false));
  CHECK(rewinds.rewound());
  CHECK_FALSE(rewinds.begin_anew(false));
  for (int i = 0; i < 3 * RdRewinds::kMost; ++i) {
    CHECK(rewinds.begin_anew(false));
    rewinds.progress();
  }
  rewinds.established();
  CHECK_FALSE(rewinds.rewound());
}

TEST_CASE("rd state: work that may have been delivered in part stays uncertain until it is done") {
  RdRewinds rewinds;
  CHECK(rewinds.begin_anew(false));
  CHECK_FALSE(rewinds.uncertain());
  CHECK(rewinds.begin_anew(true));
  CHECK(rewinds.begin_anew(false));
  rewinds.established();
  CHECK(rewinds.uncertain());
  rewinds.nothing_left();
  CHECK_FALSE(rewinds.uncertain());
}

TEST_CASE("rd state: a peer that is in doubt is asked until it is heard") {
  RdSigns signs;
  signs.doubt();
  CHECK(signs.probe_wanted());
  signs.probe_done();
  CHECK(signs.doubted());
  signs.heard();
  CHECK_FALSE(signs.doubted());
}

TEST_CASE(
    "rd state: a Read Request is repeated only if it, or a later one, came in an earlier "
    "association") {
  RdInbound inbound;
  inbound.repeats().delivered_request(7);
  CHECK_FALSE(inbound.repeats().repeats_request(7));
  inbound.association_ended();
  CHECK(inbound.repeats().repeats_request(6));
  CHECK(inbound.repeats().repeats_request(7));
  CHECK_FALSE(inbound.repeats().repeats_request(8));
  inbound.repeats().delivered_request(6);
  CHECK(inbound.repeats().repeats_request(7));
  CHECK_FALSE(inbound.repeats().repeats_request(8));
  inbound.repeats().incarnation_replaced();
  CHECK_FALSE(inbound.repeats().repeats_request(7));
}

TEST_CASE("rd state: silence counts from when something is awaited") {
  RdTimes times(kNow);
  CHECK(times.quiet_since() == kNow);
  CHECK_FALSE(times.has_delivered_within(1s, kNow));
  times.waits(kNow + 3s);
  CHECK(times.silent_since() == kNow + 3s);
  times.used(kNow + 4s);
  CHECK(times.silent_since() == kNow + 3s);
  CHECK(times.quiet_since() == kNow + 4s);
  times.heard(kNow + 5s);
  CHECK(times.silent_since() == kNow + 5s);
  times.delivered(kNow + 5s);
  CHECK(times.has_delivered_within(1s, kNow + 5s + 999ms));
  CHECK_FALSE(times.has_delivered_within(1s, kNow + 6s));
}
