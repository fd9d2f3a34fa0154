// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("rd: a message arrives, and completes at its source when it did") {
  RdScene scene;
  scene.b.post_receives(1, 100);
  scene.a.fill(pattern(100, 1));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 100, 7));
  const auto received = scene.collect(scene.b.recv_cq, 1, 5s);
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::success);
  CHECK(received[0].byte_count == 100);
  CHECK(received[0].source == scene.a.address());
  CHECK(same(scene.b.bytes(0, 100), pattern(100, 1)));
  const auto sent = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].wr_id == 7);
  CHECK(sent[0].status == WcStatus::success);
}
