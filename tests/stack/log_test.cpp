// SPDX-License-Identifier: Apache-2.0
// What the log tells of connections, peers, drops and messages. That it does so at the right levels
// and rates is tested in tests/unit.
#include "stack/rc_support.h"
#include "stack/rd_scene.h"
#include "stack/support.h"
#include "support/log_lines.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Two connected RC queue pairs of two devices.
struct Connected {
  Connected() { connect(a, b, b_device); }

  Device a_device = Device::open("127.0.0.1");
  Device b_device = Device::open("127.0.0.1");
  RcParty a{a_device};
  RcParty b{b_device};
};

}  // namespace

TEST_CASE("the log tells who connected to whom, and that the connection was closed") {
  LogLines lines(LogLevel::info);
  Connected pair;
  const std::string b_address = pair.a.qp.query().peer_address.to_string();
  const std::string a_address = pair.b.qp.query().peer_address.to_string();
  const uint32_t a = pair.a.qp.number();
  const uint32_t b = pair.b.qp.number();
  CHECK(lines.count(LogLevel::info, a, "connected to " + b_address) == 1);
  CHECK(lines.count(LogLevel::info, b, "accepted a connection from " + a_address) == 1);
  pair.a.qp.disconnect();
  CHECK(eventually([&] {
    return lines.count(LogLevel::info, a,
                       "connection with " + b_address + " ended: it was closed in order") == 1 &&
           lines.count(LogLevel::info, b,
                       "connection with " + a_address + " ended: it was closed in order") == 1;
  }));
  CAPTURE(lines.text());
  CHECK(lines.count(LogLevel::info, a, "ended") == 1);
}

TEST_CASE("the log tells that a connection ended by a Terminate, and its code") {
  LogLines lines(LogLevel::info);
  Connected pair;
  pair.b.post_receives(1, 8);
  REQUIRE_FALSE(pair.a.send(0, 64));
  CHECK(eventually([&] {
    return lines.count(LogLevel::info, pair.b.qp.number(), "the peer broke the protocol (") == 1 &&
           lines.count(LogLevel::info, pair.a.qp.number(), "the peer sent a Terminate (") == 1;
  }));
  CAPTURE(lines.text());
}

TEST_CASE("the log tells that a queue pair which is destroyed ends its connection") {
  LogLines lines(LogLevel::info);
  uint32_t number = 0;
  {
    Connected pair;
    number = pair.a.qp.number();
  }
  CHECK(lines.count(LogLevel::info, number, "ended: ") == 1);
}

TEST_CASE("the log tells of connections that are rejected, at both ends, or that nobody takes") {
  LogLines lines(LogLevel::info);
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  Address address;
  {
    Listener listener(device, 0);
    address = listener.address();
    auto connecting =
        std::async(std::launch::async, [&] { return refusal([&] { party.qp.connect(address); }); });
    auto request = listener.get_request(kPatience);
    REQUIRE(request);
    request->reject();
    CHECK(connecting.get() == Errc::rejected);
  }
  CHECK(lines.count(LogLevel::info, 0, address.to_string() + " rejected the connection") == 1);
  CHECK(lines.count(LogLevel::info, 0, "the connection request of 127.0.0.1:") == 1);
  CHECK(refusal([&] { party.qp.connect(address); }));
  CHECK(lines.count(LogLevel::info, 0, "No connection to " + address.to_string()) == 1);
}

TEST_CASE("the log tells of RD peers that come, restart and are forgotten") {
  LogLines lines(LogLevel::info);
  RdScene scene;
  const uint32_t a = scene.a.qp.number();
  const std::string b = "RD peer " + scene.b.address().to_string();
  scene.b.post_receives(2, 64);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64));
  REQUIRE(scene.collect(scene.a.send_cq, 1).size() == 1);
  CHECK(lines.count(LogLevel::info, a, b + " is there") == 1);

  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64));
  scene.b.qp.modify(QpState::error);
  scene.b.qp.modify(QpState::reset);
  scene.b.qp.modify(QpState::init);
  scene.b.qp.modify(QpState::rts);
  const auto failed = scene.collect(scene.a.send_cq, 1);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].status == WcStatus::peer_restarted);
  CHECK(lines.count(LogLevel::info, a, b + " has restarted") == 1);

  scene.run([&] { return scene.a.qp.peers().empty(); }, 3600s, 10s);
  CAPTURE(lines.text());
  CHECK(lines.count(LogLevel::info, a, b + " is forgotten") == 1);
}

TEST_CASE("the log tells of an RD peer that is silent") {
  LogLines lines(LogLevel::info);
  RdScene scene;
  const Address nobody = Address::parse("10.0.0.9").with_port(7);
  REQUIRE_FALSE(scene.a.send(nobody, 0, 64));
  REQUIRE(scene.collect(scene.a.send_cq, 1).size() == 1);
  CHECK(lines.count(LogLevel::info, scene.a.qp.number(),
                    "RD peer " + nobody.to_string() + " is silent") == 1);
}

TEST_CASE("the log tells of a Send with a wrong Q_Key, and of many in one line a second") {
  LogLines lines(LogLevel::debug);
  World world;
  Party party(world.add_device(), {.datagram = {.q_key = 77}});
  Stranger stranger(world);
  const std::string reason = "drop_q_key, peer " + stranger.address().to_string() + ": ";
  for (uint32_t i = 0; i < 100; ++i) {
    Segment segment;
    segment.q_key = 1;
    segment.msn = i;
    stranger.send(party.address(), segment);
  }
  world.settle();
  const uint32_t number = party.qp.number();
  CHECK(lines.count(LogLevel::debug, number, reason + "segments with another Q_Key") == 1);
  CHECK(lines.count(LogLevel::debug, number, "drop_q_key") == 1);
  world.advance(1s);
  CHECK(lines.count(LogLevel::debug, number, reason + "99 more") == 1);
  CAPTURE(lines.text());
  CHECK(lines.count(LogLevel::debug, number, "drop_q_key") == 2);
}

TEST_CASE("the log traces a UD Send from its posting to both completions") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  LogLines lines(LogLevel::trace);
  REQUIRE_FALSE(b.post_recv(11, 0, 100));
  REQUIRE_FALSE(a.send(b.address(), 0, 64, 12));
  world.settle();
  CAPTURE(lines.text());
  const uint32_t sender = a.qp.number();
  const uint32_t receiver = b.qp.number();
  const std::string to = b.address().to_string();
  const std::string from = a.address().to_string();
  const auto traced = [&](uint32_t number, const std::string& message) {
    const auto found = lines.with(LogLevel::trace, number, message);
    return found.size() == 1 && found[0].message == message;
  };
  CHECK(traced(receiver, "posted receive of 100 bytes, wr_id 11"));
  CHECK(traced(sender, "posted send of 64 bytes to " + to + ", wr_id 12"));
  CHECK(traced(sender, "sent send of 64 bytes to " + to + ", wr_id 12"));
  CHECK(traced(sender, "completed send of 64 bytes, wr_id 12: success"));
  CHECK(traced(receiver, "received Send of 64 bytes from " + from));
  CHECK(traced(receiver, "completed recv of 64 bytes from " + from + ", wr_id 11: success"));
  CHECK(lines.all().size() == 6);
}

TEST_CASE("the log traces messages of RC and RD as well") {
  LogLines lines(LogLevel::trace);
  SECTION("RC") {
    Connected pair;
    pair.b.post_receives(1, 100);
    REQUIRE_FALSE(pair.a.send(0, 64, 12));
    CHECK(next(pair.b.recv_cq).status == WcStatus::success);
    CHECK(next(pair.a.send_cq).status == WcStatus::success);
    CAPTURE(lines.text());
    const uint32_t a = pair.a.qp.number();
    const uint32_t b = pair.b.qp.number();
    CHECK(lines.count(LogLevel::trace, a, "posted send of 64 bytes, wr_id 12") == 1);
    CHECK(lines.count(LogLevel::trace, a, "sent send of 64 bytes, wr_id 12") == 1);
    CHECK(lines.count(LogLevel::trace, a, "completed send of 64 bytes, wr_id 12: success") == 1);
    CHECK(lines.count(LogLevel::trace, b, "received Send of 64 bytes") == 1);
    CHECK(lines.count(LogLevel::trace, b, "completed recv of 64 bytes, wr_id 0: success") == 1);
  }
  SECTION("RD") {
    RdScene scene;
    scene.b.post_receives(1, 100);
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 12));
    REQUIRE(scene.collect(scene.a.send_cq, 1).size() == 1);
    CAPTURE(lines.text());
    const uint32_t a = scene.a.qp.number();
    CHECK(lines.count(LogLevel::trace, a, "posted send of 64 bytes to ") == 1);
    CHECK(lines.count(LogLevel::trace, a, "sent send of 64 bytes to ") == 1);
    CHECK(lines.count(LogLevel::trace, scene.b.qp.number(), "received Send of 64 bytes from ") ==
          1);
  }
}

TEST_CASE("a callback that throws in the middle of messages loses lines and no message") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  const uint64_t lost = log_lines_lost();
  set_log_callback([](const LogRecord&) { throw std::bad_alloc(); });
  set_log_level(LogLevel::trace);
  b.post_receives(1, 64);
  const std::error_code error = a.send(b.address(), 0, 64);
  world.settle();
  set_log_level(LogLevel::warn);
  set_log_callback({});
  CHECK_FALSE(error);
  CHECK(drain(b.recv_cq).size() == 1);
  CHECK(log_lines_lost() >= lost + 6);
}
