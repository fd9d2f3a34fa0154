// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include "stack/rc_support.h"

/// Revision 2 of MPA (RFC 6581) with plain sockets, the step back to revision 1, and start-ups on
/// connections that carried other bytes before.
namespace diwarp::test {

namespace {

/// A frame of revision 2 with the words of its enhanced data.
std::vector<std::byte> enhanced(bool reply, uint16_t ird_word, uint16_t ord_word,
                                std::string_view private_data = "", uint8_t flags = 0x50) {
  std::vector<std::byte> data;
  append(data, ird_word, 2);
  append(data, ord_word, 2);
  for (std::byte byte : text(private_data)) data.push_back(byte);
  return to_bytes(MpaFrame{.reply = reply, .flags = flags, .revision = 2, .private_data = data});
}

/// An RDMA Write of no bytes, to STag 1 at 0: what siw makes its peer ready with.
std::vector<std::byte> ready_write() {
  auto fpdu = hex("000ec140000000010000000000000000");
  const uint32_t crc = castagnoli(fpdu);
  for (int shift = 0; shift < 32; shift += 8) fpdu.push_back(static_cast<std::byte>(crc >> shift));
  return fpdu;
}

/// A client that connects to a plain socket.
struct Client {
  explicit Client(const ConnectOptions& options = {}) {
    outcome = std::async(std::launch::async, [this, options]() -> std::error_code {
      try {
        private_data = party.qp.connect(listener.address(), options);
        return {};
      } catch (const Error& error) {
        return error.code();
      }
    });
  }

  Device device = Device::open("127.0.0.1");
  RcParty party{device};
  RawListener listener;
  std::vector<std::byte> private_data;  // once there is an outcome
  std::future<std::error_code> outcome;
};

/// The opcode octet and the payload of a Terminate FPDU's code: layer and type, code.
void check_terminate(RawStream& peer, uint8_t code) {
  const auto fpdu = peer.receive(2 + 18 + 4);
  REQUIRE(fpdu.size() == 24);
  CHECK(fpdu[3] == std::byte{0x47});   // RV 1, opcode 7
  CHECK(fpdu[20] == std::byte{0x20});  // LLP, MPA
  CHECK(fpdu[21] == static_cast<std::byte>(code));
  CHECK(peer.ending() == Ending::in_order);
}

}  // namespace

TEST_CASE("RC connect asks in revision 2, offering all that makes the peer ready") {
  const auto hello = text("hello");
  Client client({.private_data = hello, .ord = 3, .ird = 5});
  RawStream peer = client.listener.accept();
  CHECK(peer.receive(29) == enhanced(false, 0xc005, 0xc003, "hello"));
  REQUIRE(peer.send(enhanced(true, 0x8002, 0x8004, "yes")));
  CHECK_FALSE(client.outcome.get());
  CHECK(client.private_data == text("yes"));
  const QueuePairAttributes attributes = client.party.qp.query();
  CHECK(attributes.mpa_revision == 2);
  CHECK(attributes.ord == 2);
  CHECK(attributes.ird == 4);
  CHECK(attributes.crc);
  // The first FPDU is a Write of no bytes.
  const auto ready = peer.receive(20);
  REQUIRE(ready.size() == 20);
  CHECK(std::vector(ready.begin(), ready.begin() + 4) == hex("000ec140"));
}

TEST_CASE("RC connect without peer-to-peer offers nothing and sends nothing by itself") {
  Client client({.crc = false, .peer_to_peer = false, .markers = true});
  RawStream peer = client.listener.accept();
  CHECK(peer.receive(24) == enhanced(false, 16, 16, "", 0x90));
  REQUIRE(peer.send(enhanced(true, 16, 16, "", 0x10)));
  CHECK_FALSE(client.outcome.get());
  const QueuePairAttributes attributes = client.party.qp.query();
  CHECK_FALSE(attributes.crc);
  CHECK(attributes.receive_markers);
  CHECK_FALSE(attributes.send_markers);
  pollfd watched{peer.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 20) == 0);
}

TEST_CASE("RC connect in revision 1 says nothing of enhanced data") {
  Client client({.revision = 1});
  RawStream peer = client.listener.accept();
  CHECK(peer.receive(20) == to_bytes(MpaFrame{}));
  REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true})));
  CHECK_FALSE(client.outcome.get());
  CHECK(client.party.qp.query().mpa_revision == 1);
}

TEST_CASE("A listener answers revision 2 with the lower depths and the Write that makes it ready") {
  Server server;
  RawStream peer = RawStream::connect(server.listener->address());
  REQUIRE(peer.send(enhanced(false, 0xc003, 0xc032, "hi")));
  ConnectionRequest request = server.request();
  CHECK(request.revision() == 2);
  CHECK(request.depths().ord == 3);
  CHECK(request.depths().ird == 50);
  CHECK(same(request.private_data(), text("hi")));
  request.accept(server.party.qp, {.private_data = text("welcome"), .ord = 8, .ird = 8});
  CHECK(peer.receive(31) == enhanced(true, 0x8008, 0x8003, "welcome"));
  const QueuePairAttributes attributes = server.party.qp.query();
  CHECK(attributes.ord == 3);
  CHECK(attributes.ird == 8);

  // The responder may speak once the message of no length has come, which nobody sees.
  server.party.fill(text("answer"));
  REQUIRE_FALSE(server.party.send(0, 6));
  pollfd watched{peer.descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 20) == 0);
  REQUIRE(peer.send(ready_write()));
  CHECK(peer.receive(32) == fpdu_bytes(Fpdu{.payload = text("answer")}));
  CHECK(drain(server.party.recv_cq).empty());
}

TEST_CASE("A request without depths asks for none, and one of revision 1 for any") {
  Server server;
  RawStream first = RawStream::connect(server.listener->address());
  REQUIRE(first.send(to_bytes(MpaFrame{})));
  const ConnectionRequest old = server.request();
  CHECK(old.revision() == 1);
  CHECK(old.depths().ord == 16382);
  CHECK(old.depths().ird == 16382);
  RawStream second = RawStream::connect(server.listener->address());
  REQUIRE(second.send(enhanced(false, 0x3fff, 0)));
  ConnectionRequest request = server.request();
  CHECK(request.depths().ord == 16382);
  CHECK(request.depths().ird == 0);
  request.accept(server.party.qp, {.ord = 4, .ird = 4});
  CHECK(second.receive(24) == enhanced(true, 0, 0x3fff));
  CHECK(server.party.qp.query().ord == 4);
}

TEST_CASE("A listener rejects a request of revision 2 in revision 2, with private data") {
  Server server;
  RawStream peer = RawStream::connect(server.listener->address());
  REQUIRE(peer.send(enhanced(false, 0x8001, 0x8001)));
  server.request().reject(text("full"));
  CHECK(peer.receive(28) == enhanced(true, 0x8000, 0, "full", 0x70));
  CHECK(peer.ending() == Ending::in_order);
}

TEST_CASE("RC connect asks a peer that closes without an answer once more in revision 1") {
  Client client;
  {
    RawStream first = client.listener.accept();
    CHECK(first.receive(24).size() == 24);
    SECTION("in order") {}
    SECTION("with a reset") { first.reset(); }
  }
  RawStream second = client.listener.accept();
  CHECK(second.receive(20) == to_bytes(MpaFrame{}));
  REQUIRE(second.send(to_bytes(MpaFrame{.reply = true})));
  CHECK_FALSE(client.outcome.get());
  CHECK(client.party.qp.query().mpa_revision == 1);
}

TEST_CASE("RC connect asks a peer that answers in revision 1 once more in that") {
  const uint8_t flags = GENERATE(uint8_t{0x60}, uint8_t{0x40});  // with a reject, or without
  Client client;
  {
    RawStream first = client.listener.accept();
    first.receive(24);
    REQUIRE(first.send(to_bytes(MpaFrame{.reply = true, .flags = flags})));
    CHECK(first.ending() != Ending::none);
  }
  RawStream second = client.listener.accept();
  CHECK(second.receive(20) == to_bytes(MpaFrame{}));
  SECTION("which accepts") {
    REQUIRE(second.send(to_bytes(MpaFrame{.reply = true})));
    CHECK_FALSE(client.outcome.get());
  }
  SECTION("which rejects again") {
    REQUIRE(second.send(to_bytes(MpaFrame{.reply = true, .flags = 0x60})));
    CHECK(client.outcome.get() == Errc::rejected);
  }
  SECTION("which closes again") {
    second.shutdown();
    CHECK(client.outcome.get() == Errc::connection_lost);
  }
}

TEST_CASE("RC connect that may not fall back asks once") {
  Client client({.fallback = false});
  RawStream peer = client.listener.accept();
  peer.receive(24);
  std::error_code expected;
  SECTION("and says that the peer closed") {
    peer.shutdown();
    expected = Errc::connection_lost;
  }
  SECTION("and says that it was rejected") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true, .flags = 0x60})));
    expected = Errc::rejected;
  }
  SECTION("and says that the peer speaks another revision") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true})));
    expected = Errc::protocol_error;
  }
  CHECK(client.outcome.get() == expected);
}

TEST_CASE("RC connect that is rejected in revision 2 does not ask again") {
  Client client;
  RawStream peer = client.listener.accept();
  peer.receive(24);
  SECTION("with enhanced data") { REQUIRE(peer.send(enhanced(true, 0, 0, "no", 0x70))); }
  SECTION("without, as siw does it") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true, .flags = 0x70, .revision = 2})));
  }
  CHECK(client.outcome.get() == Errc::rejected);
  CHECK(client.device.counter("mpa_rejects") == 1);
}

TEST_CASE("RC connect times out on a peer that answers neither revision, once for both") {
  Client client({.timeout = 100ms});
  { client.listener.accept().receive(24); }
  RawStream second = client.listener.accept();
  CHECK(client.outcome.get() == Errc::timed_out);
  CHECK(client.device.counter("mpa_timeouts") == 1);
}

TEST_CASE("RC connect tells a peer that wants more Reads than it may have so, with a Terminate") {
  Client client({.ird = 4});
  RawStream peer = client.listener.accept();
  peer.receive(24);
  REQUIRE(peer.send(enhanced(true, 0x8010, 0x8005)));
  CHECK(client.outcome.get() == Errc::protocol_error);
  check_terminate(peer, 6);
  CHECK(client.device.counter("rc_terminates_sent") == 1);
}

TEST_CASE("RC connect tells a peer that cannot be made ready so, with a Terminate") {
  Client client;
  RawStream peer = client.listener.accept();
  peer.receive(24);
  REQUIRE(peer.send(enhanced(true, 0x8010, 0x0010)));
  CHECK(client.outcome.get() == Errc::protocol_error);
  check_terminate(peer, 7);
}

TEST_CASE("RC connect refuses replies of revision 2 that say too little") {
  Client client;
  RawStream peer = client.listener.accept();
  peer.receive(24);
  SECTION("no enhanced data") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true, .revision = 2})));
  }
  SECTION("enhanced data announced that is not there") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true, .flags = 0x50, .revision = 2})));
  }
  SECTION("another revision") {
    REQUIRE(peer.send(to_bytes(MpaFrame{.reply = true, .flags = 0x50, .revision = 3})));
  }
  CHECK(client.outcome.get() == Errc::protocol_error);
  CHECK(client.device.counter("mpa_bad_requests") == 1);
}

TEST_CASE("Peer-to-peer RC connections let either side speak first, and take no receive for it") {
  Server server;
  RcParty client(server.device);
  client.post_receives(1, 100);
  auto connecting =
      std::async(std::launch::async, [&] { client.qp.connect(server.listener->address()); });
  server.request().accept(server.party.qp);
  connecting.get();
  server.party.fill(text("first"));
  REQUIRE_FALSE(server.party.send(0, 5));
  CHECK(next(client.recv_cq).byte_count == 5);
  CHECK(same(client.bytes(0, 5), text("first")));
  CHECK(drain(server.party.recv_cq).empty());
}

TEST_CASE("RC connections have the depths that both sides can have") {
  Server server;
  RcParty client(server.device);
  const ConnectOptions asks{.ord = 9, .ird = 3};
  auto connecting =
      std::async(std::launch::async, [&] { client.qp.connect(server.listener->address(), asks); });
  server.request().accept(server.party.qp, {.ord = 5, .ird = 7});
  connecting.get();
  const QueuePairAttributes initiator = client.qp.query();
  const QueuePairAttributes responder = server.party.qp.query();
  CHECK(initiator.ord == 7);
  CHECK(initiator.ird == 3);
  CHECK(responder.ord == 3);
  CHECK(responder.ird == 7);
}

// --- On connections that carried other bytes before.

TEST_CASE("MPA starts on a connection that carried other bytes before") {
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  const uint8_t revision = GENERATE(uint8_t{1}, uint8_t{2});
  auto [a, b] = raw_pair();
  REQUIRE(a.send(text("switch to RDMA?")));
  REQUIRE(b.receive(15) == text("switch to RDMA?"));
  REQUIRE(b.send(text("yes")));
  REQUIRE(a.receive(3) == text("yes"));

  const Device one = Device::open("127.0.0.1", {.progress = progress});
  const Device other = Device::open("127.0.0.1", {.progress = progress});
  RcParty initiator(one);
  RcParty responder(other);
  responder.post_receives(1, 100);
  auto accepting = std::async(std::launch::async, [&, fd = b.take().release()] {
    const auto answer = text("answer");
    auto request = responder.qp.accept_on(fd, {.private_data = answer}, kPatience);
    if (progress == Progress::manual) responder.recv_cq.wait(kPatience);
    return request;
  });
  const auto question = text("question");
  CHECK(initiator.qp.connect_on(a.take().release(), {.private_data = question,
                                                     .revision = revision}) == text("answer"));
  initiator.fill(text("rdma"));
  REQUIRE_FALSE(initiator.send(0, 4));
  CHECK(next(initiator.send_cq).status == WcStatus::success);
  CHECK(accepting.get() == text("question"));
  if (progress == Progress::thread) CHECK(next(responder.recv_cq).byte_count == 4);
  CHECK(same(responder.bytes(0, 4), text("rdma")));
  CHECK(responder.qp.query().mpa_revision == revision);
}

TEST_CASE("Bytes after the peer's frame on such a connection are the first of the stream") {
  auto [raw, own] = raw_pair();
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  party.post_receives(1, 100);
  auto bytes = to_bytes(MpaFrame{.private_data = text("pd")});
  const auto first = fpdu_bytes(Fpdu{.payload = text("early")});
  bytes.insert(bytes.end(), first.begin(), first.end());
  REQUIRE(raw.send(bytes));
  CHECK(party.qp.accept_on(own.take().release()) == text("pd"));
  CHECK(next(party.recv_cq).byte_count == 5);
  CHECK(raw.receive(20) == to_bytes(MpaFrame{.reply = true}));
}

TEST_CASE("MPA's start-up on a connection says what is wrong with the peer") {
  auto [raw, own] = raw_pair();
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  const int fd = own.take().release();
  SECTION("that sends something else to the responder") {
    REQUIRE(raw.send(text("GET / HTTP/1.1")));
    CHECK(refusal([&] { party.qp.accept_on(fd); }) == Errc::protocol_error);
    CHECK(device.counter("mpa_bad_requests") == 1);
  }
  SECTION("that sends something else to the initiator") {
    REQUIRE(raw.send(text("GET / HTTP/1.1")));
    CHECK(refusal([&] { party.qp.connect_on(fd); }) == Errc::protocol_error);
  }
  SECTION("that keeps silent towards the responder") {
    CHECK(refusal([&] { party.qp.accept_on(fd, {}, 50ms); }) == Errc::timed_out);
    CHECK(device.counter("mpa_timeouts") == 1);
  }
  SECTION("that keeps silent towards the initiator") {
    CHECK(refusal([&] { party.qp.connect_on(fd, {.timeout = 50ms}); }) == Errc::timed_out);
  }
  SECTION("that closes on the responder") {
    raw.shutdown();
    CHECK(refusal([&] { party.qp.accept_on(fd); }) == Errc::connection_lost);
  }
  SECTION("that closes on the initiator, who does not ask again") {
    raw.shutdown();
    CHECK(refusal([&] { party.qp.connect_on(fd); }) == Errc::connection_lost);
  }
  SECTION("that speaks a later revision") {
    REQUIRE(raw.send(to_bytes(MpaFrame{.revision = 9})));
    CHECK(refusal([&] { party.qp.accept_on(fd); }) == Errc::protocol_error);
    CHECK(raw.receive(20) == to_bytes(MpaFrame{.reply = true, .flags = 0x60, .revision = 2}));
  }
  SECTION("that has no room for the private data") {
    const std::vector<std::byte> much(512);
    REQUIRE(raw.send(enhanced(false, 1, 1)));
    CHECK(refusal([&] { party.qp.accept_on(fd, {.private_data = much}); }) ==
          Errc::invalid_argument);
    CHECK(raw.receive(24) == enhanced(true, 0, 0, "", 0x70));
  }
  CHECK(raw.ending() != Ending::none);  // the descriptor was taken over
  CHECK(party.qp.state() == QpState::init);
}

TEST_CASE("A descriptor that is no TCP connection is refused for a start-up and left alone") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  const UniqueFd datagrams(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  CHECK(refusal([&] { party.qp.connect_on(datagrams.get()); }) == Errc::invalid_argument);
  CHECK(refusal([&] { party.qp.accept_on(datagrams.get()); }) == Errc::invalid_argument);
  CHECK(refusal([&] { party.qp.connect_on(-1); }) == Errc::invalid_argument);
  CHECK(::fcntl(datagrams.get(), F_GETFD) != -1);
}

}  // namespace diwarp::test
