// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_hostile.h"

/// Messages of the wrong length, in the wrong order, at the wrong time, and at random.
namespace diwarp::test {

namespace {

std::vector<std::byte> bytes(size_t count) { return std::vector<std::byte>(count, std::byte{0}); }

/// The opcodes whose bodies have one length.
struct Fixed {
  uint8_t opcode;
  uint32_t queue;
  size_t body;
};
constexpr Fixed kFixed[] = {{1, 1, 28}, {8, 0, 8}, {9, 0, 8}, {10, 1, 52}, {11, 3, 12}};

/// The first segment is right, the second is refused with this code.
void check_second_refused(const Wire& first, const Wire& second, const std::string& code) {
  Fortress fortress;
  fortress.face();
  fortress.send(first);
  fortress.send(second);
  const SeenTerminate terminate = fortress.seen_terminate();
  CHECK(terminate.code == code);
  const auto cause = to_ulpdu(second);
  CHECK(same(terminate.headers, std::span(cause).first(terminate.headers.size())));
  CHECK(terminate.headers.size() >= 14);
  CHECK(next(fortress.victim->recv_cq).status != WcStatus::success);
  fortress.check_bystanders();
}

}  // namespace

TEST_CASE("A peer's messages of one length are refused with any other") {
  Fortress fortress;
  for (const Fixed& fixed : kFixed) {
    for (const size_t length : {size_t{0}, fixed.body - 1, fixed.body + 1, size_t{1000}}) {
      fortress.face();
      const bool longer = length > fixed.body;
      check_refused(fortress,
                    "opcode " + std::to_string(fixed.opcode) + " bytes " + std::to_string(length),
                    Wire{.opcode = fixed.opcode, .queue = fixed.queue, .body = bytes(length)},
                    longer ? "1/2/5" : "0/2/255", Shown::ddp_header);
    }
    const bool request = fixed.queue == 1;
    fortress.face();
    check_refused(
        fortress, "opcode " + std::to_string(fixed.opcode) + " without end",
        Wire{
            .last = false, .opcode = fixed.opcode, .queue = fixed.queue, .body = bytes(fixed.body)},
        "0/2/255", request ? Shown::request : Shown::ddp_header);
  }
}

TEST_CASE("A peer's Send longer than its receive is refused and not written") {
  Fortress fortress;
  fortress.face(1, 10);
  check_refused(fortress, "one segment", Wire{.body = bytes(11)}, "1/2/5", Shown::ddp_header);
  CHECK(next(fortress.victim->recv_cq).status == WcStatus::local_length_error);
}

TEST_CASE("A peer's Send without a receive is refused under the policy terminate") {
  Fortress fortress;
  fortress.face(0);
  check_refused(fortress, "Send", Wire{.body = bytes(4)}, "1/2/2", Shown::ddp_header);
  fortress.face(0);
  check_refused(fortress, "empty Send", Wire{}, "1/2/2", Shown::ddp_header);
  fortress.face(0);
  check_refused(fortress, "Immediate Data", Wire{.opcode = 8, .body = bytes(8)}, "1/2/2",
                Shown::ddp_header);
}

TEST_CASE("Inside a peer's Send the next segment must go on where the last one ended") {
  const Wire first{.last = false, .body = bytes(10)};
  check_second_refused(first, Wire{.mo = 9, .body = bytes(1)}, "1/2/4");
  check_second_refused(first, Wire{.mo = 11, .body = bytes(1)}, "1/2/4");
  check_second_refused(first, Wire{.mo = 0, .body = bytes(10)}, "1/2/4");
  check_second_refused(first, Wire{.mo = 0xFFFFFFFF, .body = bytes(10)}, "1/2/4");
  check_second_refused(first, Wire{.msn = 2, .body = bytes(1)}, "1/2/3");
  check_second_refused(first, Wire{.opcode = 5, .mo = 10, .body = bytes(1)}, "0/2/6");
  check_second_refused(first, Wire{.opcode = 8, .mo = 10, .body = bytes(8)}, "0/2/6");
  check_second_refused(first, Wire{.mo = 10, .body = bytes(91)}, "1/2/5");
}

TEST_CASE("A peer's message sequence number that comes twice is refused") {
  Fortress fortress;
  fortress.face(3, 100);
  fortress.send(Wire{});
  fortress.send(Wire{});
  CHECK(fortress.seen_terminate().code == "1/2/3");
  CHECK(next(fortress.victim->recv_cq).status == WcStatus::success);
  CHECK(next(fortress.victim->recv_cq).status == WcStatus::wr_flush_error);
  fortress.check_unharmed();
}

TEST_CASE("A peer's Terminate is believed, told to the application and not answered") {
  Fortress fortress;
  fortress.face();
  fortress.send(Wire{.opcode = 7, .queue = 2, .body = hex("01010000")});
  CHECK(fortress.seen_terminate().code.empty());
  const auto terminate = fortress.victim->qp.query().terminate;
  REQUIRE(terminate);
  CHECK(terminate->received);
  CHECK(terminate->code == TerminateCode{0, 1, 1});
  fortress.check_unharmed();
}

TEST_CASE("A peer's Terminate that is cut short or empty ends the connection all the same") {
  Fortress fortress;
  for (const char* body : {"", "01", "010100", "1101c000", "1101c0000012", "0101e000002e4141"}) {
    CAPTURE(body);
    fortress.face();
    fortress.send(Wire{.opcode = 7, .queue = 2, .body = hex(body)});
    CHECK(fortress.seen_terminate().code.empty());
    const auto terminate = fortress.victim->qp.query().terminate;
    REQUIRE(terminate);
    CHECK(terminate->received);
    fortress.check_unharmed();
  }
}

TEST_CASE("A peer's tagged message that another one cuts is refused") {
  Fortress fortress;
  fortress.face();
  Wire write = write_of(fortress.stag(), fortress.base() + 2000, 8);
  write.last = false;
  fortress.send(write);
  Wire response = write_of(fortress.stag(), fortress.base(), 8);
  response.opcode = 2;
  fortress.send(response);
  const SeenTerminate terminate = fortress.seen_terminate();
  CHECK(terminate.code == "0/2/6");
  CHECK(same(fortress.victim->bytes(0, 8), first_of(Fortress::before(), 8)));
  fortress.check_bystanders();
}

TEST_CASE("A peer's Send may be interleaved with its Write") {
  Fortress fortress;
  fortress.face();
  fortress.send(Wire{.last = false, .body = bytes(3)});
  Wire write = write_of(fortress.stag(), fortress.base() + 2000, 8);
  write.last = false;
  fortress.send(write);
  fortress.send(Wire{.mo = 3, .body = bytes(4)});
  fortress.send(write_of(fortress.stag(), fortress.base() + 2008, 8));
  fortress.send(Wire{.opcode = 7, .queue = 2, .body = hex("00000000")});
  CHECK(next(fortress.victim->recv_cq).byte_count == 7);
  fortress.seen_terminate();
  CHECK(same(fortress.victim->bytes(2000, 16), std::vector<std::byte>(16, std::byte{0xEE})));
  fortress.check_bystanders();
}

TEST_CASE("A peer that asks for more Reads at once than were agreed is refused") {
  World world;
  Device& device = world.add_device();
  RcParty party(device, {.access = kOpen});
  auto ends = llp::memory_stream_pair(1 << 20, 256);
  mpa::NegotiatedParameters parameters;
  parameters.ird = 2;
  party.impl().start(negotiated(std::move(ends.second), false, parameters));
  std::vector<std::byte> requests;
  for (uint32_t msn = 1; msn <= 3; ++msn) {
    const auto request = framed(to_ulpdu(read_of(party.mr->rkey(), party.mr->base(), 8, msn)));
    requests.insert(requests.end(), request.begin(), request.end());
  }
  write(*ends.first, requests);
  world.settle();
  const SeenTerminate terminate = terminate_in(read(*ends.first));
  CHECK(terminate.code == "1/2/2");
  CHECK(terminate.flags == 6);
  CHECK(party.qp.state() == QpState::error);
}

TEST_CASE("Random segments under a right CRC are right or end in a Terminate, and harm nothing") {
  World world;
  Device& device = world.add_device();
  Random random(20071010);
  size_t terminated = 0;
  for (int round = 0; round < 400; ++round) {
    RcParty party(device,
                  {.memory = 4096, .stream = {.receive_not_ready = ReceiveNotReady::terminate}});
    party.fill(pattern(4096, 5));
    auto ends = llp::memory_stream_pair(1 << 20, 256);
    party.impl().start(negotiated(std::move(ends.second), false));
    Wire wire;
    for (int segment = 0; segment < 20 && party.qp.state() == QpState::rts; ++segment) {
      wire = {.tagged = random.chance(0.4),
              .last = random.chance(0.7),
              .ddp_version = static_cast<uint8_t>(random.chance(0.9) ? 1 : random.below(4)),
              .rdmap_version = static_cast<uint8_t>(random.chance(0.9) ? 1 : random.below(4)),
              .opcode = static_cast<uint8_t>(random.below(16)),
              .stag = random.chance(0.7) ? party.mr->rkey() : static_cast<uint32_t>(random.next()),
              .offset = party.mr->base() + random.below(5000) - 500,
              .word = static_cast<uint32_t>(random.next()),
              .queue = static_cast<uint32_t>(random.below(5)),
              .msn = static_cast<uint32_t>(random.below(3)),
              .mo = static_cast<uint32_t>(random.chance(0.8) ? 0 : random.next()),
              .body = pattern(random.below(100), random.next())};
      write(*ends.first, framed(to_ulpdu(wire)));
      world.settle();
    }
    // No right was granted and no receive posted: whatever came, not a byte has changed.
    if (!same(party.memory, pattern(4096, 5))) FAIL("round " << round);
    if (party.qp.state() != QpState::error) continue;
    const SeenTerminate terminate = terminate_in(read(*ends.first));
    const auto told = party.qp.query().terminate;
    REQUIRE(told);
    CHECK((told->received || !terminate.code.empty()));
    if (!told->received) CHECK(to_string(told->code).find("unknown") == std::string::npos);
    terminated += terminate.code.empty() ? 0 : 1;
  }
  CHECK(terminated > 200);
}

}  // namespace diwarp::test
