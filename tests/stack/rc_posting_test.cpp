// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// What is posted to an RC queue pair while its connection ends, and after that.
namespace diwarp::test {

namespace {

using Ids = std::vector<uint64_t>;

/// The wr_ids of completions with this status, which all have.
Ids ids_of(CompletionQueue& cq, WcStatus status) {
  Ids ids;
  for (const WorkCompletion& completion : drain(cq)) {
    CHECK(completion.status == status);
    ids.push_back(completion.wr_id);
  }
  return ids;
}

/// A queue pair in closing: its peer, here bytes on a stream, has not closed its side.
struct Closing {
  Closing() : party(world.add_device()) {
    auto ends = llp::memory_stream_pair();
    peer = std::move(ends.first);
    party.impl().start(negotiated(std::move(ends.second), true));
    party.post_receives(2, 100);
    leaving = std::async(std::launch::async, [&] { party.qp.disconnect({.timeout = kPatience}); });
    REQUIRE(eventually([&] { return party.qp.state() == QpState::closing; }));
  }

  World world;
  RcParty party;
  StreamEnd peer;
  std::future<void> leaving;
};

}  // namespace

TEST_CASE("A list is posted whole, or nothing of it") {
  Couple couple;
  couple.b.post_receives(4, 100);
  const Sge sge = couple.a.mr->sge(0, 10);
  std::array<SendWorkRequest, 3> list;
  for (size_t i = 0; i < list.size(); ++i)
    list[i] = {.wr_id = i, .sges = {&sge, 1}, .flags = SendFlags::signaled};

  const std::array<Sge, 100> many{};
  list[2].sges = many;
  CHECK(couple.a.qp.post_all_sends(list) == Errc::too_many_sges);
  list[2] = {.opcode = WrOpcode::write_record};
  CHECK(couple.a.qp.post_all_sends(list) == Errc::unsupported_operation);
  const uint32_t places = couple.a.qp.query().capacity.max_send_wr;
  CHECK(couple.a.qp.post_all_sends(std::vector(4 * places, list[0])) == Errc::queue_full);
  couple.world.settle();
  CHECK(drain(couple.b.recv_cq).empty());
  CHECK(couple.a.qp.query().posted_sends == 0);

  list[2] = {.wr_id = 2, .sges = {&sge, 1}, .flags = SendFlags::signaled};
  REQUIRE_FALSE(couple.a.qp.post_all_sends(list));
  couple.world.settle();
  CHECK(drain(couple.b.recv_cq).size() == 3);
  CHECK(ids_of(couple.a.send_cq, WcStatus::success) == Ids{0, 1, 2});
}

TEST_CASE("A list that is posted in error is flushed whole, or not posted at all") {
  Couple couple;
  couple.a.qp.modify(QpState::error);
  std::array<SendWorkRequest, 2> list = {SendWorkRequest{.wr_id = 1}, SendWorkRequest{.wr_id = 2}};
  REQUIRE_FALSE(couple.a.qp.post_all_sends(list));
  CHECK(ids_of(couple.a.send_cq, WcStatus::wr_flush_error) == Ids{1, 2});
  list[1].opcode = WrOpcode::write_record;
  CHECK(couple.a.qp.post_all_sends(list) == Errc::unsupported_operation);
  CHECK(drain(couple.a.send_cq).empty());
  couple.a.qp.modify(QpState::reset);
  CHECK(couple.a.qp.post_all_sends(std::span(list).first(1)) == Errc::invalid_state);
}

TEST_CASE("What is posted to an RC queue pair in error is flushed after what was before") {
  Couple couple;
  couple.a.post_receives(2, 100);
  couple.a.qp.modify(QpState::error);
  REQUIRE_FALSE(couple.a.send(0, 10, 5, SendFlags::none));
  REQUIRE_FALSE(couple.a.post_recv(2, 0, 10));
  CHECK(ids_of(couple.a.send_cq, WcStatus::wr_flush_error) == Ids{5});
  CHECK(ids_of(couple.a.recv_cq, WcStatus::wr_flush_error) == Ids{0, 1, 2});
}

TEST_CASE("What is posted while an RC connection ends waits for that, and is then flushed") {
  Closing scene;
  RcParty& party = scene.party;
  REQUIRE_FALSE(party.send(0, 1, 7, SendFlags::none));
  REQUIRE_FALSE(party.post_recv(2, 200, 100));
  CHECK(party.qp.query().posted_sends == 1);
  CHECK(party.qp.query().posted_receives == 3);
  write(*scene.peer, fpdu_bytes(Fpdu{.payload = text("one")}));
  write(*scene.peer, fpdu_bytes(Fpdu{.msn = 2, .payload = text("two")}));
  write(*scene.peer, fpdu_bytes(Fpdu{.msn = 3, .payload = text("nobody wants this")}));
  scene.peer->shutdown_send();
  scene.leaving.get();
  CHECK(statuses(party.recv_cq) ==
        Statuses{WcStatus::success, WcStatus::success, WcStatus::wr_flush_error});
  CHECK(ids_of(party.send_cq, WcStatus::wr_flush_error) == Ids{7});
  CHECK(scene.world.devices[0].counter("rc_disconnects") == 1);
  CHECK(read(*scene.peer).empty());  // nothing of the request went out
}

TEST_CASE("While an RC connection ends a full queue says queue_full") {
  Closing scene;
  RcParty& party = scene.party;
  uint64_t sends = 0, receives = 2;
  while (sends < 1000 && !party.send(0, 1, sends)) ++sends;
  while (receives < 1000 && !party.post_recv(receives, 0, 1)) ++receives;
  CHECK(sends == 128);
  CHECK(receives == 128);
  CHECK(party.send(0, 1) == Errc::queue_full);
  CHECK(party.post_recv(0, 0, 1) == Errc::queue_full);
  scene.peer->shutdown_send();
  scene.leaving.get();
  CHECK(ids_of(party.send_cq, WcStatus::wr_flush_error).size() == 128);
  CHECK(ids_of(party.recv_cq, WcStatus::wr_flush_error).size() == 128);
}

TEST_CASE("An RC queue pair that takes shared receives still takes none of its own in error") {
  World world;
  Device& device = world.add_device();
  ProtectionDomain pd(device);
  CompletionQueue cq(device, 16);
  SharedReceiveQueue srq(pd, {});
  QueuePair qp(pd, {.send_cq = cq, .recv_cq = cq, .srq = srq});
  qp.modify(QpState::error);
  CHECK(qp.post_recv({.wr_id = 1}) == Errc::unsupported_operation);
  CHECK_FALSE(qp.post_send({.wr_id = 2}));
  CHECK(ids_of(cq, WcStatus::wr_flush_error) == Ids{2});
}

TEST_CASE("Threads that post while an RC connection ends have each request completed once") {
  const Device device = Device::open("127.0.0.1");
  for (int round = 0; round < 20; ++round) {
    RcParty a(device, {.entries = 4096, .capacity = {.max_send_wr = 1024, .max_recv_wr = 1024}});
    RcParty b(device, {.entries = 4096, .capacity = {.max_recv_wr = 1024}});
    connect(a, b, device);
    b.post_receives(512, 1);
    std::array<std::atomic<uint64_t>, 2> posted{};
    std::atomic<bool> refused{false};
    std::vector<std::thread> posters;
    for (size_t kind = 0; kind < posted.size(); ++kind) {
      posters.emplace_back([&, kind] {
        for (uint64_t id = 0; id < 512; ++id) {
          const std::error_code error = kind == 0 ? a.send(0, 1, id) : a.post_recv(id, 0, 1);
          if (error) refused = true;
          if (!error) ++posted[kind];
        }
      });
    }
    a.qp.disconnect({.timeout = kPatience});
    for (std::thread& poster : posters) poster.join();
    CHECK_FALSE(refused);
    const auto sends = await(a.send_cq, posted[0]);
    const auto receives = await(a.recv_cq, posted[1]);
    REQUIRE(sends.size() == 512);
    REQUIRE(receives.size() == 512);
    for (uint64_t id = 0; id < 512; ++id) REQUIRE(sends[id].wr_id == id);
    for (uint64_t id = 0; id < 512; ++id) REQUIRE(receives[id].wr_id == id);
    CHECK(drain(a.send_cq).empty());
    CHECK(drain(a.recv_cq).empty());
  }
}

}  // namespace diwarp::test
