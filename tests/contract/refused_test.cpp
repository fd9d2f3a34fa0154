// SPDX-License-Identifier: Apache-2.0
#include <tuple>

#include "contract/watched.h"

/// What a peer refuses, and how a connection that fails is told.
namespace diwarp::contract {

TEST_CASE("A Write to an STag of nothing writes nothing and ends the connection") {
  Watched pair;
  pair.check_write_refused(100, pair.stale());
}

TEST_CASE("A Write beyond the region writes nothing and ends the connection") {
  Watched pair;
  pair.check_write_refused(100, pair.b.remote(pair.b.pages.bytes().size() - 99));
}

TEST_CASE("A Write before the region writes nothing and ends the connection") {
  Watched pair;
  pair.check_write_refused(100, {pair.b.mr->rkey(), pair.b.mr->base() - 1});
}

TEST_CASE("A Write without the right writes nothing and ends the connection") {
  Watched pair(Access::local_write | Access::remote_read);
  pair.check_write_refused(100, pair.b.remote());
}

TEST_CASE("A Write to memory of another protection domain writes nothing and ends the connection") {
  Watched pair;
  const Foreign foreign(pair.device_b);
  pair.check_write_refused(100, {foreign.region.rkey(), foreign.region.base()});
  CHECK(foreign.pages.bytes()[0] == std::byte{0});
}

TEST_CASE("A Read from an STag of nothing fails and ends the connection") {
  Watched pair;
  pair.check_read_refused(100, pair.stale());
}

TEST_CASE("A Read beyond the region fails and ends the connection") {
  Watched pair;
  pair.check_read_refused(100, pair.b.remote(pair.b.pages.bytes().size() - 99));
}

TEST_CASE("A Read without the right fails and ends the connection") {
  if (!needs(Capability::read_rights)) return;
  Watched pair(Access::local_write | Access::remote_write);
  pair.check_read_refused(100, pair.b.remote());
}

TEST_CASE("A Read from memory of another protection domain fails and ends the connection") {
  Watched pair;
  const Foreign foreign(pair.device_b);
  pair.check_read_refused(100, {foreign.region.rkey(), foreign.region.base()});
}

TEST_CASE("A refused Write is told on both sides by a Terminate code") {
  if (!needs(Capability::terminate_codes)) return;
  Watched pair;
  REQUIRE_FALSE(pair.a.write(0, 100, pair.stale()));
  const TerminateCode invalid_stag{.layer = 1, .type = 1, .code = 0};
  for (auto [events, qp, received] : {std::tuple(&pair.events_a, &pair.a.qp, true),
                                      std::tuple(&pair.events_b, &pair.b.qp, false)}) {
    const AsyncEvent event = next_event(*events, AsyncEventType::qp_fatal);
    REQUIRE(event.terminate);
    CHECK(to_string(event.terminate->code) == to_string(invalid_stag));
    CHECK(event.terminate->received == received);
    const QueuePairAttributes attributes = qp->query();
    REQUIRE(attributes.terminate);
    CHECK(attributes.terminate->code == event.terminate->code);
  }
}

TEST_CASE("A refused Read is told by its status") {
  if (!needs(Capability::terminate_codes)) return;
  Watched pair(Access::local_write);
  REQUIRE_FALSE(pair.a.read(0, 100, pair.b.remote(), 6));
  check_error(next(pair.a.send_cq), WcStatus::remote_access_error);
}

TEST_CASE("A connection that ended in order has no Terminate") {
  Pair pair;
  pair.a.qp.disconnect();
  CHECK(pair.b.qp.wait_disconnected(kPatience));
  CHECK_FALSE(pair.a.qp.query().terminate);
  CHECK_FALSE(pair.b.qp.query().terminate);
}

TEST_CASE("When a connection fails each request gets one completion, in the order of posting") {
  constexpr uint64_t kEach = 20;
  Watched pair;
  pair.b.post_receives(kEach, 100);
  const RemoteMemory nothing{pair.b.mr->rkey() ^ 0x5A5A5A00, 0};
  uint64_t posted = 0;
  for (; posted < 2 * kEach; ++posted) {
    const std::error_code error =
        posted == kEach / 2 ? pair.a.read(0, 100, nothing, posted) : pair.a.send(0, 100, posted);
    if (!error) continue;
    CHECK(error == Errc::invalid_state);  // a device that failed and has not told yet
    break;
  }
  for (uint64_t i = 0; i < posted; ++i) CHECK(next(pair.a.send_cq).wr_id == i);
  CHECK_FALSE(pair.a.send_cq.wait(kMoment));
  CHECK(pair.a.qp.query().posted_sends == 0);
}

TEST_CASE("A connection that fails spoils no other connection of the devices") {
  Watched pair;
  Party c(pair.device_a);
  Party d(pair.device_b);
  join(c.qp, d.qp, pair.device_b);
  REQUIRE_FALSE(pair.a.write(0, 100, pair.stale()));
  pair.check_ended();
  check_message(c, d);
  check_message(d, c);
}

}  // namespace diwarp::contract
