// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// The errors of connect() about servers that are not as they should be.
namespace diwarp::test {

namespace {

/// The error of connect() about a server that treats its only connection like this.
template <class Serve>
std::error_code connect_to(Serve&& serve, const ConnectOptions& options = {.revision = 1}) {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  RawListener listener;
  auto serving = std::async(std::launch::async, [&] {
    RawStream peer = listener.accept();
    serve(peer);
  });
  const std::error_code code = refusal([&] { party.qp.connect(listener.address(), options); });
  serving.get();
  CHECK(party.qp.state() == QpState::init);
  return code;
}

}  // namespace

TEST_CASE("RC connect to a port where nobody listens says so") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  RawListener gone;
  const Address nobody = gone.address();
  gone.close();
  CHECK(refusal([&] { party.qp.connect(nobody); }) == std::errc::connection_refused);
  CHECK(refusal([&] { party.qp.connect(Address::parse("127.0.0.1")); }) ==
        Errc::invalid_destination);
  CHECK(refusal([&] { party.qp.connect(Address::parse("[::1]:5")); }) == Errc::invalid_destination);
  CHECK(refusal([&] { party.qp.connect(Address::parse("0.0.0.0:5")); }) ==
        Errc::invalid_destination);
}

TEST_CASE("RC connect to a server of another kind tells what is wrong") {
  const auto answer = [](std::vector<std::byte> bytes) {
    return [bytes](RawStream& peer) {
      peer.receive(20);
      peer.send(bytes);
      peer.ending();
    };
  };
  CHECK(connect_to(answer(text("HTTP/1.1 400 Bad Request\r\n"))) == Errc::protocol_error);
  CHECK(connect_to(answer(text("x"))) == Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{}))) == Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .revision = 0}))) ==
        Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .revision = 2}))) ==
        Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .length = 600}))) ==
        Errc::protocol_error);
  CHECK(connect_to(answer(to_bytes(MpaFrame{.reply = true, .flags = 0x60}))) == Errc::rejected);
}

TEST_CASE("RC connect to a server that breaks off says so") {
  CHECK(connect_to([](RawStream& peer) { peer.receive(20); }) == Errc::connection_lost);
  CHECK(connect_to([](RawStream& peer) {
          peer.receive(20);
          peer.send(first_of(to_bytes(MpaFrame{.reply = true}), 19));
        }) == Errc::connection_lost);
  CHECK(connect_to([](RawStream& peer) { peer.reset(); }) == Errc::connection_lost);
}

TEST_CASE("RC connect to a server that keeps silent times out") {
  const ConnectOptions soon{.timeout = 50ms, .revision = 1};
  CHECK(connect_to([](RawStream& peer) { peer.ending(); }, soon) == Errc::timed_out);
  CHECK(connect_to(
            [](RawStream& peer) {
              peer.send(first_of(to_bytes(MpaFrame{.reply = true}), 19));
              peer.ending();
            },
            soon) == Errc::timed_out);
}

TEST_CASE("RC connect takes a reply that comes in pieces, with FPDUs right after it") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  party.post_receives(1, 100);
  RawListener listener;
  auto serving = std::async(std::launch::async, [&] {
    RawStream peer = listener.accept();
    peer.receive(20);
    auto bytes = to_bytes(MpaFrame{.reply = true, .private_data = text("pd")});
    const auto first = fpdu_bytes(Fpdu{.payload = text("early")});
    bytes.insert(bytes.end(), first.begin(), first.end());
    peer.send(std::span(bytes).first(10));
    peer.send(std::span(bytes).subspan(10, 30));
    peer.send(std::span(bytes).subspan(40));
    return peer.ending();
  });
  CHECK(party.qp.connect(listener.address(), {.revision = 1}) == text("pd"));
  CHECK(next(party.recv_cq).byte_count == 5);
  CHECK(same(party.bytes(0, 5), text("early")));
  party.qp.modify(QpState::error);
  CHECK(serving.get() == Ending::in_order);
}

}  // namespace diwarp::test
