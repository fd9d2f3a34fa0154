// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cerrno>
#include <set>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// The treatment of the datagrams to come by the link under a queue pair. Lives as long as the
/// test.
struct Script {
  size_t room = SIZE_MAX;          // datagrams until the link is full
  size_t largest = 1472;           // what it says
  size_t refuse_above = SIZE_MAX;  // longer ones are refused with EMSGSIZE
  int error = 0;                   // the next datagram is refused with this, once
  std::vector<std::vector<std::byte>> sent;
  size_t calls = 0;
  int descriptor = -1;
};

/// A link over another that follows a script.
class ScriptedLink final : public llp::DatagramLink {
 public:
  ScriptedLink(std::unique_ptr<llp::DatagramLink> inner, Script& script)
      : inner_(std::move(inner)), script_(script) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    ++script_.calls;
    llp::SendResult result;
    for (const llp::OutgoingDatagram& datagram : burst) {
      if (script_.error != 0)
        return {result.sent, llp::SendStatus::refused, std::exchange(script_.error, 0)};
      if (datagram.size() > script_.refuse_above) {
        script_.largest = script_.refuse_above;
        return {result.sent, llp::SendStatus::refused, EMSGSIZE};
      }
      if (script_.room == 0) return {result.sent, llp::SendStatus::would_block, EAGAIN};
      --script_.room;
      REQUIRE(inner_->send({&datagram, 1}).sent == 1);
      std::vector<std::byte>& bytes = script_.sent.emplace_back();
      for (ConstBytes piece : datagram.pieces)
        bytes.insert(bytes.end(), piece.begin(), piece.end());
      ++result.sent;
    }
    return result;
  }
  size_t receive(llp::ReceiveBatch& batch) override { return inner_->receive(batch); }
  size_t max_datagram(const Address&) override { return script_.largest; }
  Address local_address() const override { return inner_->local_address(); }
  int descriptor() const override { return script_.descriptor; }
  void on_ready(std::function<void()> callback) override { inner_->on_ready(std::move(callback)); }

 private:
  std::unique_ptr<llp::DatagramLink> inner_;
  Script& script_;
};

/// A descriptor that can be made readable and unwritable: an end of a full pair of sockets.
class Plug {
 public:
  Plug() {
    REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends_) == 0);
  }
  ~Plug() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  int descriptor() const { return ends_[0]; }
  void fill() {
    const std::array<char, 1024> bytes{};
    while (::send(ends_[0], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  void empty() {
    std::array<char, 1024> bytes;
    while (::recv(ends_[1], bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
  }
  void make_readable() { REQUIRE(::send(ends_[1], "x", 1, 0) == 1); }

 private:
  int ends_[2];
};

struct Scene {
  explicit Scene(const PartyOptions& options = {}, int descriptor = -1)
      : source(world.add_device(wrap(descriptor)), options), target(world.add_device()) {
    target.post_receives(64, 1000);
  }
  World::Wrap wrap(int descriptor) {
    script.descriptor = descriptor;
    return [this](World::Link link) -> World::Link {
      return std::make_unique<ScriptedLink>(std::move(link), script);
    };
  }
  uint64_t count(const char* counter) const { return world.devices[0].counter(counter); }
  /// Some rounds; a link that is full may keep its device busy for ever.
  void run() {
    for (int round = 0; round < 20; ++round)
      for (Device& device : world.devices) device.progress();
  }

  Script script;
  World world;
  Party source;
  Party target;
};

}  // namespace

TEST_CASE("a link that is full holds sends back and loses none, in order") {
  Scene scene;
  scene.script.room = 3;
  for (uint64_t id = 0; id < 10; ++id)
    REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10, id));
  scene.run();
  CHECK(drain(scene.source.send_cq).size() == 3);
  CHECK(scene.count("tx_would_block") != 0);
  CHECK(scene.count("tx_datagrams") == 3);
  scene.script.room = SIZE_MAX;
  scene.run();
  const auto sends = drain(scene.source.send_cq);
  REQUIRE(sends.size() == 7);
  for (uint64_t id = 0; id < 7; ++id) CHECK(sends[id].wr_id == id + 3);
  CHECK(drain(scene.target.recv_cq).size() == 10);
}

TEST_CASE("a message that the link takes a piece at a time arrives whole") {
  Scene scene;
  const auto sent = pattern(64000, 1);
  scene.source.fill(sent);
  REQUIRE_FALSE(scene.target.post_recv(100, 0, 64000));
  Party target(scene.world.devices[1]);
  REQUIRE_FALSE(target.post_recv(1, 0, 64000));
  scene.script.room = 0;
  REQUIRE_FALSE(scene.source.send(target.address(), 0, 64000));
  for (int i = 0; i < 100; ++i) {
    scene.script.room = 1;
    scene.run();
  }
  REQUIRE(drain(target.recv_cq).size() == 1);
  CHECK(same(target.bytes(0, 64000), sent));
  CHECK(scene.script.sent.size() == 45);  // 64000 / 1442, none twice
}

TEST_CASE("messages gathered from 64 pieces each pass through bursts of many") {
  Scene scene({.memory = 1 << 20, .capacity = {.max_send_sge = 64}});
  const auto contents = pattern(64 * 100, 1);
  scene.source.fill(contents);
  scene.script.room = 0;
  Party target(scene.world.devices[1], {.memory = 1 << 20});
  target.post_receives(100, 64);
  for (size_t i = 0; i < 100; ++i) {
    std::vector<Sge> sges;
    for (size_t k = 0; k < 64; ++k) sges.push_back(scene.source.mr.sge(i * 64 + k, 1));
    REQUIRE_FALSE(scene.source.qp.post_send({.sges = sges, .destination = target.address()}));
  }
  scene.script.room = SIZE_MAX;
  scene.run();
  REQUIRE(drain(target.recv_cq).size() == 100);
  CHECK(same(target.bytes(0, contents.size()), contents));
}

TEST_CASE("with a descriptor, a full link is left alone until it can be written") {
  Plug plug;
  plug.fill();
  Scene scene({}, plug.descriptor());
  scene.script.room = 0;
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10, 1));
  scene.run();
  const size_t calls = scene.script.calls;
  scene.script.room = SIZE_MAX;
  scene.run();
  CHECK(scene.script.calls == calls);
  CHECK(scene.source.qp.query().posted_sends == 1);
  // More posts do not make it try either.
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10, 2));
  scene.run();
  CHECK(scene.script.calls == calls);
  plug.empty();
  scene.run();
  CHECK(drain(scene.source.send_cq).size() == 2);
  CHECK(drain(scene.target.recv_cq).size() == 2);
}

TEST_CASE("a queue pair may wait for its link and for its completion queue at the same time") {
  Plug plug;
  plug.fill();
  Scene scene({.receive_entries = 1}, plug.descriptor());
  scene.source.post_receives(8, 100);
  scene.script.room = 0;
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10));
  for (int i = 0; i < 4; ++i) REQUIRE_FALSE(scene.target.send(scene.source.address(), 0, 10));
  plug.make_readable();
  scene.run();
  // The link is still full: receives have to come out all the same.
  CHECK(drain(scene.source.recv_cq).size() == 4);
  scene.script.room = SIZE_MAX;
  plug.empty();
  scene.run();
  CHECK(drain(scene.source.send_cq).size() == 1);
}

TEST_CASE("sends that are done are reported although the link is full again") {
  Plug plug;
  plug.fill();
  Scene scene({.send_entries = 1}, plug.descriptor());
  scene.script.room = 3;
  for (uint64_t id = 0; id < 5; ++id)
    REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10, id));
  scene.run();
  CHECK(drain(scene.source.send_cq).size() == 3);
  scene.script.room = SIZE_MAX;
  plug.empty();
  scene.run();
  CHECK(drain(scene.source.send_cq).size() == 2);
}

TEST_CASE("a datagram that is too long for the path is cut anew") {
  Scene scene;
  const auto sent = pattern(8000, 1);
  scene.source.fill(sent);
  Party target(scene.world.devices[1]);
  REQUIRE_FALSE(target.post_recv(1, 0, 8000));
  scene.script.room = 2;  // two long segments pass before the path shrinks
  REQUIRE_FALSE(scene.source.send(target.address(), 0, 8000, 5));
  scene.script.refuse_above = 600;
  scene.script.room = SIZE_MAX;
  scene.run();
  const auto sends = drain(scene.source.send_cq);
  REQUIRE(sends.size() == 1);
  CHECK(sends[0].status == WcStatus::success);
  REQUIRE(drain(target.recv_cq).size() == 1);
  CHECK(same(target.bytes(0, 8000), sent));
  CHECK(scene.count("tx_errors") == 1);
  REQUIRE(scene.script.sent.size() == 2 + (8000 - 2 * 1442 + 569) / 570);
  CHECK(scene.script.sent[2].size() == 600);
}

TEST_CASE("a send that is refused although it was cut anew fails with the link's errno") {
  Scene scene;
  scene.script.refuse_above = 600;
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 1000, 1));
  scene.run();
  REQUIRE(drain(scene.source.send_cq).at(0).status == WcStatus::success);
  // The link keeps claiming more than it takes.
  struct Liar final : Script {};
  scene.script.refuse_above = 1;
  scene.script.largest = 600;
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 5, 2));
  scene.run();
  const auto sends = drain(scene.source.send_cq);
  REQUIRE(sends.size() == 1);
  CHECK(sends[0].wr_id == 2);
  CHECK(sends[0].status == WcStatus::local_qp_operation_error);
  CHECK(sends[0].vendor_error == EMSGSIZE);
}

TEST_CASE("a send that the network refuses fails with its errno, and the next one goes out") {
  Scene scene;
  scene.script.error = ENETUNREACH;
  for (uint64_t id = 0; id < 3; ++id)
    REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10, id, SendFlags::none));
  scene.run();
  const auto sends = drain(scene.source.send_cq);
  REQUIRE(sends.size() == 1);  // only the failure was to be told
  CHECK(sends[0].wr_id == 0);
  CHECK(sends[0].status == WcStatus::local_qp_operation_error);
  CHECK(sends[0].vendor_error == ENETUNREACH);
  CHECK(scene.count("tx_errors") == 1);
  CHECK(drain(scene.target.recv_cq).size() == 2);
  CHECK(scene.source.qp.state() == QpState::rts);
}

TEST_CASE("a refusal in the middle of a burst ends the message it belongs to, and no other") {
  Scene scene;
  scene.script.room = 0;
  for (uint64_t id = 0; id < 4; ++id)
    REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10, id));
  // Message 1 is the second of the burst.
  scene.script.room = 1;
  scene.run();
  scene.script.error = EPERM;
  scene.script.room = SIZE_MAX;
  scene.run();
  const auto sends = drain(scene.source.send_cq);
  REQUIRE(sends.size() == 4);
  for (uint64_t id = 0; id < 4; ++id) {
    CHECK(sends[id].wr_id == id);
    CHECK(sends[id].status == (id == 1 ? WcStatus::local_qp_operation_error : WcStatus::success));
  }
  CHECK(drain(scene.target.recv_cq).size() == 3);
}

TEST_CASE("an incarnation is drawn anew by every queue pair, and MSNs count up by one") {
  Scene scene;
  for (int i = 0; i < 3; ++i) REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10));
  scene.run();
  REQUIRE(scene.script.sent.size() == 3);
  const uint32_t incarnation = read_be32(scene.script.sent[0], 4);
  CHECK(read_be32(scene.script.sent[2], 4) == incarnation);
  CHECK(msn_of(scene.script.sent[1]) == msn_of(scene.script.sent[0]) + 1);
  CHECK(msn_of(scene.script.sent[2]) == msn_of(scene.script.sent[0]) + 2);
  Party second(scene.world.devices[0]);
  REQUIRE_FALSE(second.send(scene.target.address(), 0, 10));
  scene.run();
  CHECK(read_be32(scene.script.sent[3], 4) != incarnation);  // 2^-32 says otherwise
}

TEST_CASE("each destination is shown another incarnation, and each always the same") {
  Scene scene;
  Party other(scene.world.add_device());
  Party third(scene.world.devices[1]);  // on the target's host
  const Address group = Address::parse("239.1.2.3:7");
  const std::array to{scene.target.address(), other.address(), third.address(), group};
  for (int round = 0; round < 3; ++round)
    for (const Address& destination : to) REQUIRE_FALSE(scene.source.send(destination, 0, 10));
  scene.run();
  REQUIRE(scene.script.sent.size() == 12);
  std::set<uint32_t> shown;
  for (size_t i = 0; i < 12; ++i) {
    const uint32_t incarnation = read_be32(scene.script.sent[i], 4);
    CHECK(incarnation == read_be32(scene.script.sent[i % 4], 4));
    CHECK(incarnation != 0);
    shown.insert(incarnation);
  }
  CHECK(shown.size() == 4);  // 2^-29 says otherwise
}

TEST_CASE("a queue pair that comes back from reset shows another incarnation") {
  Scene scene;
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10));
  scene.run();
  for (const QpState next : {QpState::reset, QpState::init, QpState::rts})
    scene.source.qp.modify(next);
  REQUIRE_FALSE(scene.source.send(scene.target.address(), 0, 10));
  scene.run();
  REQUIRE(scene.script.sent.size() == 2);
  // 2^-32 says otherwise.
  CHECK(read_be32(scene.script.sent[0], 4) != read_be32(scene.script.sent[1], 4));
}
