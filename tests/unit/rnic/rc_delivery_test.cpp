// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_delivery.h"

#include <optional>
#include <string_view>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

namespace fault = rdmap::fault;
using rdmap::Opcode;
using rdmap::StreamSegment;

StreamSegment segment(uint32_t offset, std::string_view text, bool last = true,
                      Opcode opcode = Opcode::send) {
  return {.opcode = opcode, .last = last, .message_offset = offset, .payload = bytes_of(text)};
}

struct Fixture : Memory {
  explicit Fixture(ReceiveNotReady policy = ReceiveNotReady::hold)
      : delivery(receives.buffers, protection, policy) {
    delivery.start();
    termination.start();
  }

  void post(uint64_t wr_id, size_t offset, size_t length) {
    REQUIRE_FALSE(receives.post(wr_id, sge(region, offset, length)));
  }
  bool begin() { return delivery.begin(ulpdu, termination); }
  bool place(const StreamSegment& segment) { return delivery.place(segment, ulpdu, termination); }
  /// What is reported now; nothing unless that is one completion.
  std::optional<WorkCompletion> reported() {
    std::vector<WorkCompletion> all = receives.reported();
    if (all.size() != 1) return std::nullopt;
    return all[0];
  }
  std::vector<WcStatus> statuses() {
    std::vector<WcStatus> all;
    for (const WorkCompletion& completion : receives.reported()) all.push_back(completion.status);
    return all;
  }
  /// Whether a peer may read its first byte.
  ddp::RegionFault reach(STag stag) const {
    return protection.check_tagged(stag, Access::remote_read, 0, 1).fault;
  }
  bool ended_with(RcEnd reason, const TerminateCode& code) const {
    return termination.reason() == reason && termination.code() == code;
  }

  const ConstBytes ulpdu = bytes_of("a ULPDU");
  Receives receives;
  STag region = add(0, Canvas::kSize);
  RcTermination termination;
  RcDelivery delivery;
};

/// As of a message of immediate data.
ReceiveOutcome immediate() {
  return {.source = {},
          .immediate = 0x0102030405060708u,
          .byte_count = 8,
          .opcode = WcOpcode::recv_immediate};
}

}  // namespace

TEST_CASE(
    "rc delivery: a Send of several segments takes one receive, and completes it with the last") {
  Fixture f;
  f.post(1, 10, 50);
  f.post(2, 100, 50);
  REQUIRE(f.begin());
  CHECK(f.receives.next() == 2);
  REQUIRE(f.place(segment(0, "first, ", false)));
  CHECK(f.statuses().empty());
  REQUIRE(f.place(segment(7, "second")));
  const auto completion = f.reported();
  REQUIRE(completion);
  CHECK(completion->wr_id == 1);
  CHECK(completion->status == WcStatus::success);
  CHECK(completion->opcode == WcOpcode::recv);
  CHECK(completion->byte_count == 13);
  CHECK_FALSE(completion->solicited);
  CHECK_FALSE(completion->invalidated);
  CHECK(f.canvas.has_only(10, "first, second"));
  CHECK_FALSE(f.termination.ended());
}

TEST_CASE("rc delivery: a message without a receive holds the stream until there is one") {
  Fixture f;
  CHECK_FALSE(f.begin());
  CHECK(f.delivery.held());
  CHECK_FALSE(f.termination.ended());
  CHECK(f.receives.buffers.take_wish());  // posters are to tell
  f.post(1, 0, 10);
  f.delivery.resume();
  CHECK_FALSE(f.delivery.held());
  REQUIRE(f.begin());
  REQUIRE(f.place(segment(0, "here")));
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE(
    "rc delivery: with the policy terminate a message without a receive ends the connection") {
  Fixture f(ReceiveNotReady::terminate);
  CHECK_FALSE(f.begin());
  CHECK_FALSE(f.delivery.held());
  CHECK(f.ended_with(RcEnd::bad_receive, fault::kNoBuffer));
  CHECK(f.termination.offending().size() == f.ulpdu.size());
}

TEST_CASE("rc delivery: a stream that was held long enough ends, until the next one starts") {
  Fixture f;
  CHECK_FALSE(f.begin());
  f.delivery.stop_holding();
  f.delivery.resume();
  CHECK_FALSE(f.begin());
  CHECK(f.ended_with(RcEnd::bad_receive, fault::kNoBuffer));
  f.delivery.start();
  f.termination.start();
  CHECK_FALSE(f.begin());
  CHECK(f.delivery.held());
  CHECK_FALSE(f.termination.ended());
}

TEST_CASE("rc delivery: what is discarded takes no receive, nor does anything after it") {
  Fixture f;
  f.delivery.discard_unwanted();
  REQUIRE(f.begin());
  CHECK(f.place(segment(0, "lost")));
  f.post(1, 0, 10);
  REQUIRE(f.begin());
  CHECK(f.place(segment(0, "lost as well")));
  f.delivery.finish(immediate());
  CHECK_FALSE(f.delivery.target_of(segment(0, "lost"), true));
  CHECK(f.receives.next() == 1);
  CHECK(f.statuses().empty());
  CHECK(f.canvas.untouched());
  CHECK_FALSE(f.termination.ended());
}

TEST_CASE("rc delivery: while receives are posted nothing is discarded") {
  Fixture f;
  f.post(1, 0, 10);
  f.delivery.discard_unwanted();
  REQUIRE(f.begin());
  CHECK(f.place(segment(0, "wanted")));
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rc delivery: a segment that does not fit is not placed, and ends the connection") {
  Fixture f;
  f.post(1, 0, 10);
  REQUIRE(f.begin());
  REQUIRE(f.place(segment(0, "12345", false)));
  CHECK_FALSE(f.place(segment(5, "678901")));
  CHECK(f.ended_with(RcEnd::protocol_error, fault::kMessageTooLong));
  CHECK(f.statuses() == Statuses{WcStatus::local_length_error});
  CHECK(f.canvas.has_only(0, "12345"));
}

TEST_CASE("rc delivery: memory that may not be written is not, and the fault is this side's") {
  Fixture f;
  f.post(1, 0, 10);
  f.stags.erase(f.region);
  REQUIRE(f.begin());
  CHECK_FALSE(f.place(segment(0, "12345")));
  CHECK(f.ended_with(RcEnd::bad_receive, fault::kLocalCatastrophic));
  CHECK(f.termination.offending().empty());
  CHECK(f.statuses() == Statuses{WcStatus::local_protection_error});
  CHECK(f.canvas.untouched());
}

TEST_CASE(
    "rc delivery: memory that goes between two segments is noticed when it is checked again") {
  Fixture f;
  f.post(1, 0, 10);
  REQUIRE(f.begin());
  REQUIRE(f.place(segment(0, "12345", false)));
  f.stags.erase(f.region);
  f.delivery.check_again();
  CHECK_FALSE(f.place(segment(5, "67890")));
  CHECK(f.statuses() == Statuses{WcStatus::local_protection_error});
  CHECK(f.canvas.has_only(0, "12345"));
}

TEST_CASE("rc delivery: the completion tells the STag that its Send invalidated") {
  Fixture f;
  const STag other = f.add(200, 20, kAllRights | Access::remote_invalidate);
  f.post(1, 0, 10);
  REQUIRE(f.begin());
  StreamSegment with = segment(0, "gone", true, Opcode::send_solicited_invalidate);
  with.invalidate_stag = other;
  REQUIRE(f.place(with));
  CHECK(f.reach(other) == ddp::RegionFault::invalid);
  const auto completion = f.reported();
  REQUIRE(completion);
  CHECK(completion->solicited);
  CHECK(completion->invalidated);
  CHECK(completion->invalidated_stag == other);
}

TEST_CASE("rc delivery: a Send that invalidates what a peer may not completes with an error") {
  Fixture f;
  f.post(1, 0, 10);
  REQUIRE(f.begin());
  StreamSegment with = segment(0, "gone", true, Opcode::send_invalidate);
  with.invalidate_stag = f.region;
  CHECK_FALSE(f.place(with));
  CHECK(f.ended_with(RcEnd::protocol_error, fault::kStagNotInvalidated));
  CHECK(f.statuses() == Statuses{WcStatus::general_error});
  CHECK(f.reach(f.region) == ddp::RegionFault::none);
}

TEST_CASE("rc delivery: a message without payload takes a receive, and writes nothing into it") {
  Fixture f;
  f.post(1, 0, 10);
  REQUIRE(f.begin());
  f.delivery.finish(immediate());
  const auto completion = f.reported();
  REQUIRE(completion);
  CHECK(completion->opcode == WcOpcode::recv_immediate);
  CHECK(completion->immediate == 0x0102030405060708u);
  CHECK(completion->byte_count == 8);
  CHECK(completion->wr_id == 1);
  CHECK(f.canvas.untouched());
}

TEST_CASE("rc delivery: the target of a segment is the next receive's memory, which stays posted") {
  Fixture f;
  f.post(1, 20, 10);
  const auto target = f.delivery.target_of(segment(0, "12345", false), true);
  REQUIRE(target);
  target->place(0, bytes_of("12345"));
  CHECK(f.canvas.has_only(20, "12345"));
  CHECK(f.receives.next() == 1);
  f.delivery.take_receive();
  CHECK(f.receives.next() == 0);
  const auto next = f.delivery.target_of(segment(5, "67"), false);
  REQUIRE(next);
  next->place(0, bytes_of("67"));
  CHECK(f.canvas.has_only(20, "1234567"));
  REQUIRE(f.delivery.deliver(segment(5, "67"), f.ulpdu, f.termination));
  const auto completion = f.reported();
  REQUIRE(completion);
  CHECK(completion->byte_count == 7);
}

TEST_CASE("rc delivery: there is no target where nothing may be placed") {
  Fixture f;
  CHECK_FALSE(f.delivery.target_of(segment(0, "12345"), true));
  CHECK_FALSE(f.delivery.target_of(segment(5, "12345"), false));
  f.post(1, 0, 10);
  CHECK_FALSE(f.delivery.target_of(segment(0, "12345678901"), true));
  CHECK_FALSE(f.delivery.target_of(segment(8, "123"), true));
  CHECK(f.delivery.target_of(segment(8, "12"), true));
  f.stags.erase(f.region);
  CHECK_FALSE(f.delivery.target_of(segment(8, "12"), true));
}

TEST_CASE("rc delivery: an unfinished message completes its receive, or gives it back") {
  Fixture f;
  f.delivery.finish(WcStatus::general_error);  // there is none
  f.delivery.give_back();
  f.post(1, 0, 10);
  f.post(2, 20, 10);
  REQUIRE(f.begin());
  f.delivery.finish(WcStatus::general_error);
  CHECK(f.statuses() == Statuses{WcStatus::general_error});
  REQUIRE(f.begin());
  CHECK(f.receives.next() == 0);
  f.delivery.give_back();
  CHECK(f.receives.next() == 2);
  f.delivery.finish(WcStatus::general_error);
  CHECK(f.statuses().empty());
}
