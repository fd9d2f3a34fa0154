// SPDX-License-Identifier: Apache-2.0
#include "bridge/datagrams.h"

/// Peers that are wrong or hostile: the connection ends, and what is beside it goes on.
namespace diwarp::bridge_test {

namespace {

/// The request that is posted after the end.
constexpr uint64_t kLate = 99;

/// A connection whose events are watched on both sides, and datagrams on the same devices.
struct Watched {
  Watched() {
    join(a.qp, b.qp, devices.b);
    a.post_receives(2, 100);
  }

  /// Both sides' connections end with an event each, and what is posted is flushed.
  void check_ended() {
    CHECK(a.qp.wait_disconnected(kPatience));
    CHECK(b.qp.wait_disconnected(kPatience));
    for (uint64_t i = 0; i < 2; ++i) {
      const WorkCompletion flushed = next(a.recv_cq);
      CHECK(flushed.status == WcStatus::wr_flush_error);
      CHECK(flushed.wr_id == i);
    }
    CHECK(next_end(events_b) == b.qp.number());
    CHECK(a.qp.state() == QpState::error);
    REQUIRE_FALSE(a.send(0, 10, kLate));
    WorkCompletion late = next(a.send_cq);
    while (late.wr_id != kLate) late = next(a.send_cq);
    CHECK(late.status == WcStatus::wr_flush_error);
  }
  /// The queue pairs over datagrams work, and a new connection between the devices does.
  void check_goes_on() {
    check_datagram(from, to);
    check_datagram(to, from);
    Party c(devices.a);
    Party d(devices.b);
    join(c.qp, d.qp, devices.b);
    check_message(c, d);
  }

  Devices devices;
  Party a{devices.a};
  Party b{devices.b, {.access = kOpen}};
  Datagrams from{devices.a, a};
  Datagrams to{devices.b, b};
  EventQueue events_a{devices.a};
  EventQueue events_b{devices.b};
};

}  // namespace

TEST_CASE("A Write under an STag of nothing ends the connection, and datagrams go on") {
  const Fresh fresh;
  Watched scene;
  RemoteMemory remote = scene.b.remote();
  remote.stag ^= 0x00010000;
  REQUIRE_FALSE(scene.a.write(0, 100, remote));
  scene.check_ended();
  CHECK(scene.b.is_zero(0, 4096));
  scene.check_goes_on();
}

TEST_CASE("A Write beyond the region ends the connection, and datagrams go on") {
  const Fresh fresh;
  Watched scene;
  const size_t size = scene.b.pages.bytes().size();
  scene.a.fill(0, 100, 1);
  REQUIRE_FALSE(scene.a.write(0, 100, scene.b.remote(size - 99)));
  scene.check_ended();
  scene.check_goes_on();
}

TEST_CASE("A Read beyond the region fails, ends the connection, and datagrams go on") {
  const Fresh fresh;
  Watched scene;
  const size_t size = scene.b.pages.bytes().size();
  REQUIRE_FALSE(scene.a.read(0, 100, scene.b.remote(size - 99), 6));
  const WorkCompletion failed = next(scene.a.send_cq);
  CHECK(failed.status != WcStatus::success);
  CHECK(failed.wr_id == 6);
  CHECK(failed.opcode == WcOpcode::rdma_read);
  scene.check_ended();
  scene.check_goes_on();
}

TEST_CASE("A Send that finds no receive ends the connection, and datagrams go on") {
  const Fresh fresh;
  Watched scene;
  REQUIRE_FALSE(scene.a.send(0, 100));
  scene.check_ended();
  scene.check_goes_on();
}

TEST_CASE("Datagrams that name memory wrongly change nothing, and the connection goes on") {
  const Fresh fresh;
  Watched scene;
  RemoteMemory wrong = scene.b.remote();
  wrong.stag ^= 0x00010000;
  const RemoteMemory beyond = scene.b.remote(scene.b.pages.bytes().size() - 50);
  for (const RemoteMemory remote : {wrong, beyond})
    CHECK_FALSE(can_read(scene.from, scene.to, remote));
  scene.a.fill(0, 100, 1);
  REQUIRE_FALSE(scene.from.write_record(scene.to, 0, 100, wrong));
  next_good(scene.from.send_cq);
  check_datagram(scene.from, scene.to);
  REQUIRE_FALSE(scene.b.send(300, 50));
  CHECK(next_good(scene.a.recv_cq).byte_count == 50);
}

}  // namespace diwarp::bridge_test
