// SPDX-License-Identifier: Apache-2.0
#include "mpa/negotiated_parameters.h"

#include "support/bytes.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::mpa;
using namespace diwarp::test;

namespace {

StartupFrame request_1() { return {.kind = FrameKind::request, .revision = 1}; }

StartupFrame request_2(Enhanced enhanced) {
  return {.kind = FrameKind::request, .revision = 2, .enhanced = enhanced};
}

StartupFrame reply_1() { return {.kind = FrameKind::reply, .revision = 1}; }

StartupFrame reply_2(Enhanced enhanced) {
  return {.kind = FrameKind::reply, .revision = 2, .enhanced = enhanced};
}

MpaProposal first_revision() { return {.revision = 1}; }

ReadyToReceive chosen(ReadyKinds offered, uint16_t ord = 1) {
  return answer_request(request_2({.peer_to_peer = true, .ready = offered, .ird = 1, .ord = ord}),
                        {})
      .parameters.ready;
}

NegotiationResult checked(ReadyKinds wanted, uint16_t responder_ird = 1) {
  return check_reply(reply_2({.peer_to_peer = true, .ready = wanted, .ird = responder_ird}), {});
}

}  // namespace

TEST_CASE("a request of revision 1 or 2 can be answered, no other") {
  for (unsigned revision = 0; revision < 256; ++revision) {
    StartupFrame request = request_1();
    request.revision = static_cast<uint8_t>(revision);
    const bool known = revision == 1 || revision == 2;
    CHECK((check_request(request) == NegotiationFault::none) == known);
  }
}

TEST_CASE("the reject bit means nothing in a request") {
  StartupFrame request = request_1();
  request.reject = true;
  CHECK(check_request(request) == NegotiationFault::none);
}

TEST_CASE("a reject is in the revision that the request had, or the nearest there is") {
  StartupFrame request = request_1();
  for (const auto& [asked, answered] :
       {std::pair{0, 1}, std::pair{1, 1}, std::pair{2, 2}, std::pair{3, 2}, std::pair{255, 2}}) {
    request.revision = static_cast<uint8_t>(asked);
    const StartupFrame reply = make_reject(request, {});
    CHECK(reply.kind == FrameKind::reply);
    CHECK(reply.reject);
    CHECK(reply.revision == answered);
    CHECK_FALSE(reply.enhanced);
  }
}

TEST_CASE("a reject of an enhanced request has enhanced data in front of its reason") {
  const auto reason = text("no");
  const StartupFrame reply =
      make_reject(request_2({.peer_to_peer = true, .ird = 4, .ord = 4}), reason);
  REQUIRE(reply.enhanced);
  CHECK(reply.enhanced->peer_to_peer);
  CHECK(copy(reply.private_data) == reason);
}

TEST_CASE("the responder answers in the initiator's revision") {
  const Answer first = answer_request(request_1(), {});
  CHECK(first.reply.kind == FrameKind::reply);
  CHECK(first.reply.revision == 1);
  CHECK_FALSE(first.reply.enhanced);
  CHECK(first.parameters.revision == 1);
  const Answer second = answer_request(request_2({}), {});
  CHECK(second.reply.revision == 2);
  CHECK(second.reply.enhanced);
  CHECK(second.parameters.revision == 2);
}

TEST_CASE("revision 2 without enhanced data is answered without it") {
  const StartupFrame request{.kind = FrameKind::request, .revision = 2};
  const Answer answer = answer_request(request, {.ord = 3, .ird = 5});
  CHECK(answer.reply.revision == 2);
  CHECK_FALSE(answer.reply.enhanced);
  CHECK(answer.parameters.ord == 3);
  CHECK(answer.parameters.ird == 5);
  CHECK(answer.parameters.ready == ReadyToReceive::none);
}

TEST_CASE("CRCs are used if either side asks") {
  for (bool peer : {false, true}) {
    for (bool local : {false, true}) {
      StartupFrame request = request_1();
      request.crc = peer;
      const Answer answer = answer_request(request, {.crc = local});
      CHECK(answer.parameters.crc == (peer || local));
      CHECK(answer.reply.crc == (peer || local));
      StartupFrame reply = reply_1();
      reply.crc = peer;
      const NegotiationResult result = check_reply(reply, {.crc = local, .revision = 1});
      CHECK(result.parameters.crc == (peer || local));
    }
  }
}

TEST_CASE("each side gets markers if it asks, whatever the other does") {
  for (bool peer : {false, true}) {
    for (bool local : {false, true}) {
      StartupFrame request = request_1();
      request.markers = peer;
      const Answer answer = answer_request(request, {.markers = local});
      CHECK(answer.parameters.send_markers == peer);
      CHECK(answer.parameters.receive_markers == local);
      CHECK(answer.reply.markers == local);
      StartupFrame reply = reply_1();
      reply.markers = peer;
      const NegotiationResult result = check_reply(reply, {.markers = local, .revision = 1});
      CHECK(result.fault == NegotiationFault::none);
      CHECK(result.parameters.send_markers == peer);
      CHECK(result.parameters.receive_markers == local);
    }
  }
}

TEST_CASE("the responder's depths are the lower of its proposal and what the initiator gives") {
  const Answer less = answer_request(request_2({.ird = 3, .ord = 5}), {.ord = 16, .ird = 16});
  CHECK(less.parameters.ord == 3);
  CHECK(less.parameters.ird == 5);
  CHECK(less.reply.enhanced->ord == 3);
  CHECK(less.reply.enhanced->ird == 5);
  const Answer more = answer_request(request_2({.ird = 30, .ord = 50}), {.ord = 16, .ird = 8});
  CHECK(more.parameters.ord == 16);
  CHECK(more.parameters.ird == 8);
  CHECK(more.reply.enhanced->ord == 16);
  CHECK(more.reply.enhanced->ird == 8);
}

TEST_CASE("a depth that the initiator does not negotiate stays what this side proposes") {
  const Answer answer =
      answer_request(request_2({.ird = 0x3fff, .ord = 0x3fff}), {.ord = 7, .ird = 9});
  CHECK(answer.parameters.ord == 7);
  CHECK(answer.parameters.ird == 9);
  CHECK(answer.reply.enhanced->ord == 0x3fff);
  CHECK(answer.reply.enhanced->ird == 0x3fff);
}

TEST_CASE("the responder asks for a Write before a Read before a Send") {
  CHECK(chosen({.send = true, .write = true, .read = true}) == ReadyToReceive::write);
  CHECK(chosen({.write = true, .read = true}) == ReadyToReceive::write);
  CHECK(chosen({.send = true, .read = true}) == ReadyToReceive::read);
  CHECK(chosen({.read = true}) == ReadyToReceive::read);
  CHECK(chosen({.send = true}) == ReadyToReceive::send);
  CHECK(chosen({}) == ReadyToReceive::write);
}

TEST_CASE("no Read makes ready where the initiator may have none outstanding") {
  CHECK(chosen({.send = true, .read = true}, 0) == ReadyToReceive::send);
  CHECK(chosen({.read = true}, 0) == ReadyToReceive::write);
}

TEST_CASE("the reply names the one ready-to-receive message that was chosen") {
  const ReadyKinds all{.send = true, .write = true, .read = true};
  const Answer answer =
      answer_request(request_2({.peer_to_peer = true, .ready = all, .ird = 1, .ord = 1}), {});
  CHECK(answer.reply.enhanced->peer_to_peer);
  CHECK(answer.reply.enhanced->ready == ReadyKinds{.write = true});
}

TEST_CASE("without peer-to-peer there is no ready-to-receive message, whatever is offered") {
  const ReadyKinds all{.send = true, .write = true, .read = true};
  const Answer answer = answer_request(request_2({.ready = all, .ird = 1, .ord = 1}), {});
  CHECK(answer.parameters.ready == ReadyToReceive::none);
  CHECK_FALSE(answer.reply.enhanced->peer_to_peer);
  CHECK(answer.reply.enhanced->ready == ReadyKinds{});
}

TEST_CASE("a request says what is proposed") {
  const auto data = text("data");
  const StartupFrame first = make_request({.crc = false, .markers = true, .revision = 1}, data);
  CHECK(first.revision == 1);
  CHECK(first.markers);
  CHECK_FALSE(first.crc);
  CHECK_FALSE(first.enhanced);
  CHECK(copy(first.private_data) == data);

  const StartupFrame second = make_request({.ord = 3, .ird = 4}, data);
  CHECK(second.revision == 2);
  CHECK(second.crc);
  CHECK(second.enhanced == Enhanced{.peer_to_peer = true,
                                    .ready = {.send = true, .write = true, .read = true},
                                    .ird = 4,
                                    .ord = 3});
  const StartupFrame plain = make_request({.ord = 3, .ird = 4, .peer_to_peer = false}, data);
  CHECK(plain.enhanced == Enhanced{.ird = 4, .ord = 3});
}

TEST_CASE("a reply of another revision than asked for is a fault") {
  StartupFrame reply = reply_1();
  for (unsigned revision = 0; revision < 256; ++revision) {
    reply.revision = static_cast<uint8_t>(revision);
    CHECK((check_reply(reply, first_revision()).fault == NegotiationFault::none) ==
          (revision == 1));
    const NegotiationFault second = check_reply(reply, {}).fault;
    CHECK((second == NegotiationFault::revision) == (revision != 2));
  }
}

TEST_CASE("a reject is a rejection in any revision up to the one asked for") {
  StartupFrame reply = reply_1();
  reply.reject = true;
  CHECK(check_reply(reply, first_revision()).fault == NegotiationFault::rejected);
  CHECK(check_reply(reply, {}).fault == NegotiationFault::rejected);
  reply.markers = true;
  CHECK(check_reply(reply, {}).fault == NegotiationFault::rejected);
  reply.revision = 2;
  CHECK(check_reply(reply, {}).fault == NegotiationFault::rejected);
  CHECK(check_reply(reply, first_revision()).fault == NegotiationFault::revision);
  reply.revision = 3;
  CHECK(check_reply(reply, {}).fault == NegotiationFault::revision);
}

TEST_CASE("a reply to an enhanced request must be enhanced") {
  const StartupFrame reply{.kind = FrameKind::reply, .revision = 2};
  CHECK(check_reply(reply, {}).fault == NegotiationFault::not_enhanced);
}

TEST_CASE("the initiator lowers its ORD to the responder's IRD") {
  const NegotiationResult result =
      check_reply(reply_2({.ird = 2, .ord = 3}), {.ord = 16, .ird = 16, .peer_to_peer = false});
  REQUIRE(result.fault == NegotiationFault::none);
  CHECK(result.parameters.ord == 2);
  CHECK(result.parameters.ird == 3);
  CHECK(check_reply(reply_2({.ird = 99}), {.ord = 4, .peer_to_peer = false}).parameters.ord == 4);
}

TEST_CASE("a responder that wants more Reads than the initiator's IRD is told so") {
  CHECK(check_reply(reply_2({.ord = 17}), {.ird = 16}).fault == NegotiationFault::insufficient_ird);
  CHECK(check_reply(reply_2({.ord = 16}), {.ird = 16, .peer_to_peer = false}).fault ==
        NegotiationFault::none);
}

TEST_CASE("a depth that the responder does not negotiate stays what the initiator proposes") {
  const NegotiationResult result = check_reply(reply_2({.ird = 0x3fff, .ord = 0x3fff}),
                                               {.ord = 7, .ird = 9, .peer_to_peer = false});
  REQUIRE(result.fault == NegotiationFault::none);
  CHECK(result.parameters.ord == 7);
  CHECK(result.parameters.ird == 9);
}

TEST_CASE("the initiator sends a ready-to-receive message that the reply names") {
  CHECK(checked({.write = true}).parameters.ready == ReadyToReceive::write);
  CHECK(checked({.read = true}).parameters.ready == ReadyToReceive::read);
  CHECK(checked({.send = true}).parameters.ready == ReadyToReceive::send);
  CHECK(checked({.send = true, .write = true, .read = true}).parameters.ready ==
        ReadyToReceive::write);
  CHECK(checked({.send = true, .read = true}).parameters.ready == ReadyToReceive::read);
  CHECK(checked({.send = true, .read = true}, 0).parameters.ready == ReadyToReceive::send);
}

TEST_CASE("a peer-to-peer reply without a ready-to-receive message that can be sent is a fault") {
  CHECK(checked({}).fault == NegotiationFault::no_matching_ready);
  CHECK(checked({.read = true}, 0).fault == NegotiationFault::no_matching_ready);
}

TEST_CASE("no ready-to-receive message is sent unless both sides want peer-to-peer") {
  const StartupFrame willing = reply_2({.peer_to_peer = true, .ready = {.write = true}, .ird = 1});
  CHECK(check_reply(willing, {.peer_to_peer = false}).parameters.ready == ReadyToReceive::none);
  const NegotiationResult plain = check_reply(reply_2({.ready = {.write = true}, .ird = 1}), {});
  CHECK(plain.fault == NegotiationFault::none);
  CHECK(plain.parameters.ready == ReadyToReceive::none);
}

TEST_CASE("the agreement of both sides is the same, seen from either") {
  for (bool crc : {false, true})
    for (bool markers : {false, true})
      for (uint8_t revision : {uint8_t{1}, uint8_t{2}})
        for (bool peer_to_peer : {false, true})
          for (uint16_t depth : std::initializer_list<uint16_t>{0, 1, 5, 16382}) {
            const MpaProposal asks{.crc = crc,
                                   .markers = markers,
                                   .ord = depth,
                                   .ird = 4,
                                   .revision = revision,
                                   .peer_to_peer = peer_to_peer};
            const Answer answer = answer_request(make_request(asks, {}), {.crc = false, .ord = 8});
            const NegotiationResult result = check_reply(answer.reply, asks);
            REQUIRE(result.fault == NegotiationFault::none);
            CHECK(result.parameters.crc == answer.parameters.crc);
            CHECK(result.parameters.send_markers == answer.parameters.receive_markers);
            CHECK(result.parameters.receive_markers == answer.parameters.send_markers);
            CHECK(result.parameters.ready == answer.parameters.ready);
            CHECK((result.parameters.ready != ReadyToReceive::none) ==
                  (revision == 2 && peer_to_peer));
            if (revision == 1) continue;
            CHECK(result.parameters.ord == answer.parameters.ird);
            CHECK(result.parameters.ird == answer.parameters.ord);
          }
}
