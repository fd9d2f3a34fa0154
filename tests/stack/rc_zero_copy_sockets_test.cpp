// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "stack/rc_support.h"
#include "stack/socket_exchange.h"
#include "unit/llp/zero_copy_support.h"

/// Sends and Writes that TCP does not copy, and peers that take them late or never.
namespace diwarp::test {

namespace {

DeviceOptions zero_copy(size_t from = 4096) {
  return by_hand({.zerocopy_from = from, .io = IoBackend::syscall});
}

/// A queue pair whose peer is a plain socket that takes nothing by itself.
struct Deaf : Sockets {
  explicit Deaf(const DeviceOptions& options = zero_copy(), const StreamOptions& stream = {})
      : Sockets(options) {
    auto [first, second] = raw_pair();
    const int little = 16 << 10;
    REQUIRE(::setsockopt(second.descriptor(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little) == 0);
    peer.emplace(std::move(second));
    party.emplace(devices[0], RcOptions{.memory = kBytes, .stream = stream});
    party->impl().start(negotiated(stream_of(std::move(first)), true, {}));
  }
  /// A Write that has left, as far as the queue pair can tell.
  void write() {
    REQUIRE_FALSE(party->post(WrOpcode::rdma_write, 0, kBytes, {0x12345600, 0}, 7));
    REQUIRE(eventually([&] {
      step();
      return devices[0].counter("rc_tx_bytes") > kBytes;
    }));
    REQUIRE(devices[0].counter("rc_zerocopy_sends") > 0);
  }

  static constexpr size_t kBytes = 300'000;
  std::optional<RcParty> party;
  std::optional<RawStream> peer;
};

}  // namespace

TEST_CASE("Messages of all kinds and sizes arrive over sockets that send without copying") {
  if (!may_send_zero_copy()) return;
  const bool crc = GENERATE(true, false);
  const bool markers = GENERATE(false, true);
  const size_t from = GENERATE(1U, 4096U);
  const bool by_threads = GENERATE(false, true);
  CAPTURE(crc, markers, from, by_threads);
  DeviceOptions options = zero_copy(from);
  if (by_threads) options.progress = Progress::thread;
  Sockets sockets(options);
  RcParty a(sockets.devices[0], Streams::options());
  RcParty b(sockets.devices[1], Streams::options());
  join(a, b, socket_streams(),
       {.crc = crc, .send_markers = markers, .receive_markers = markers, .ord = 4, .ird = 4});
  const Exchange<RcParty> exchange{a, b, {}, [&] { sockets.step(); }};
  exchange.all(*b.mr);
  uint64_t seed = 100;
  for (size_t size = 500; size < 200'000; size = size * 3 / 2) exchange.write(size, ++seed, *b.mr);
  CHECK((sockets.count("rc_zerocopy_sends") != 0) == !markers);
  CHECK(sockets.count("rc_zerocopy_refused") == (markers ? 2 : 0));
  CHECK(sockets.count("rc_zerocopy_odd") == 0);
  CHECK(sockets.count("rc_crc_errors") == 0);
}

TEST_CASE("A Write to a peer that does not take it completes when TCP has acknowledged it") {
  if (!may_send_zero_copy()) return;
  Deaf scene;
  const auto contents = pattern(Deaf::kBytes, 1);
  scene.party->fill(contents);
  scene.write();
  for (int i = 0; i < 1000; ++i) scene.step();
  CHECK(drain(scene.party->send_cq).empty());
  const uint64_t sent = scene.devices[0].counter("rc_tx_bytes");
  size_t came = 0;
  while (came < sent) {
    const auto part = scene.peer->receive(std::min<uint64_t>(sent - came, 64 << 10));
    REQUIRE_FALSE(part.empty());
    came += part.size();
  }
  const auto done = completion_of(scene.party->send_cq, [&] { scene.step(); });
  REQUIRE(done);
  CHECK(done->wr_id == 7);
  CHECK(done->status == WcStatus::success);
  CHECK(scene.party->qp.state() == QpState::rts);
}

TEST_CASE("A thread that sleeps is woken when memory is free again") {
  if (!may_send_zero_copy()) return;
  const Progress progress = GENERATE(Progress::manual, Progress::thread);
  CAPTURE(progress);
  DeviceOptions options = zero_copy();
  options.progress = progress;
  options.spin = 0us;
  Deaf scene(options);
  scene.write();
  std::thread reader([&] { scene.peer->receive(scene.devices[0].counter("rc_tx_bytes")); });
  const auto done = scene.party->send_cq.wait(kPatience);
  reader.join();
  REQUIRE(done);
  CHECK(done->status == WcStatus::success);
}

TEST_CASE("A queue pair is destroyed at once though its peer never takes what is in flight") {
  if (!may_send_zero_copy()) return;
  Deaf scene;
  scene.write();
  SECTION("destroyed") { scene.party.reset(); }
  SECTION("moved to error") {
    scene.party->qp.modify(QpState::error);
    CHECK(statuses(scene.party->send_cq) == Statuses{WcStatus::wr_flush_error});
  }
  CHECK(scene.peer->ending() == Ending::reset);
}

TEST_CASE("An orderly end waits for the peer to take what is in flight") {
  if (!may_send_zero_copy()) return;
  const bool takes = GENERATE(true, false);
  CAPTURE(takes);
  Deaf scene(DeviceOptions{.zerocopy_from = 4096, .io = IoBackend::syscall});
  scene.write();
  std::thread reader([&] {
    if (!takes) return;
    scene.peer->receive(scene.devices[0].counter("rc_tx_bytes"));
    CHECK(scene.peer->ending() == Ending::in_order);
    scene.peer->shutdown();
  });
  scene.party->qp.disconnect({.timeout = takes ? Duration(kPatience) : Duration(50ms)});
  reader.join();
  const Statuses expected{takes ? WcStatus::success : WcStatus::wr_flush_error};
  CHECK(statuses(scene.party->send_cq) == expected);
  CHECK(scene.devices[0].counter(takes ? "rc_disconnects" : "rc_resets") == 1);
  if (!takes) CHECK(scene.peer->ending() == Ending::reset);
}

TEST_CASE("A peer that resets the connection ends it, and releases what is in flight") {
  if (!may_send_zero_copy()) return;
  Deaf scene;
  scene.write();
  scene.peer->reset();
  const auto done = completion_of(scene.party->send_cq, [&] { scene.step(); });
  REQUIRE(done);
  CHECK(scene.party->qp.state() == QpState::error);
}

TEST_CASE("A peer that ends its side while memory is in flight is served first") {
  if (!may_send_zero_copy()) return;
  Deaf scene;
  scene.write();
  scene.peer->shutdown();
  for (int i = 0; i < 1000; ++i) scene.step();
  CHECK(scene.party->qp.state() == QpState::rts);
  CHECK(drain(scene.party->send_cq).empty());
  std::thread reader([&] { scene.peer->receive(scene.devices[0].counter("rc_tx_bytes")); });
  const auto done = completion_of(scene.party->send_cq, [&] { scene.step(); });
  reader.join();
  REQUIRE(done);
  CHECK(done->status == WcStatus::success);
  CHECK(eventually([&] {
    scene.step();
    return scene.party->qp.state() == QpState::error;
  }));
  CHECK(scene.devices[0].counter("rc_disconnects") == 1);
}

TEST_CASE("A peer that ends its side and never takes what is in flight is given up") {
  if (!may_send_zero_copy()) return;
  Deaf scene(zero_copy(), {.receive_wait = 50ms});
  scene.write();
  scene.peer->shutdown();
  const auto done = completion_of(scene.party->send_cq, [&] { scene.step(); });
  REQUIRE(done);
  CHECK(done->status == WcStatus::wr_flush_error);
  CHECK(scene.party->qp.state() == QpState::error);
  CHECK(scene.devices[0].counter("rc_resets") == 1);
  CHECK(scene.peer->ending() == Ending::reset);
}

TEST_CASE("A queue pair that holds its peer lives on when memory is free again") {
  if (!may_send_zero_copy()) return;
  Deaf scene;
  scene.write();
  // A Send for which there is no receive: nothing more is read.
  REQUIRE(scene.peer->send(fpdu_bytes(Fpdu{.payload = text("held")})));
  REQUIRE(eventually([&] {
    scene.step();
    return scene.devices[0].counter("rc_receive_not_ready") == 1;
  }));
  std::thread reader([&] { scene.peer->receive(scene.devices[0].counter("rc_tx_bytes")); });
  const auto done = completion_of(scene.party->send_cq, [&] { scene.step(); });
  reader.join();
  REQUIRE(done);
  CHECK(done->status == WcStatus::success);
  CHECK(scene.party->qp.state() == QpState::rts);
}

TEST_CASE("A peer that ends its side and resets while memory is in flight has not ended in order") {
  if (!may_send_zero_copy()) return;
  Deaf scene;
  EventQueue events(scene.devices[0]);
  scene.write();
  const bool closing = GENERATE(false, true);
  CAPTURE(closing);
  rnic::RcQueuePair& queue_pair = scene.party->impl();
  rnic::Engine& engine = software(scene.devices[0]).engine();
  if (closing) engine.exclusively([&] { queue_pair.begin_disconnect(); });
  scene.peer->shutdown();
  for (int i = 0; i < 1000; ++i) scene.step();
  REQUIRE(scene.party->qp.state() == (closing ? QpState::closing : QpState::rts));
  scene.peer->reset();
  REQUIRE(eventually([&] {
    scene.step();
    return scene.party->qp.state() == QpState::error;
  }));
  CHECK(scene.devices[0].counter("rc_disconnects") == 0);
  CHECK(scene.devices[0].counter("rc_resets") == 1);
  const auto event = events.get_event(Duration::zero());
  REQUIRE(event);
  CHECK(event->type == AsyncEventType::qp_fatal);
}

TEST_CASE("A zero-copy message of many short pieces is not held up") {
  if (!may_send_zero_copy()) return;
  Sockets sockets(zero_copy());
  RcOptions options{.memory = 64 << 10, .capacity = {.max_send_sge = 32}, .access = kOpen};
  RcParty a(sockets.devices[0], options);
  RcParty b(sockets.devices[1], options);
  join(a, b, socket_streams());
  const auto contents = pattern(20 * llp::kCopiedPiece + 8000, 1);
  a.fill(contents);
  std::vector<Sge> sges;
  for (size_t i = 0; i < 20; ++i)
    sges.push_back(a.mr->sge(i * llp::kCopiedPiece, llp::kCopiedPiece));
  sges.push_back(a.mr->sge(20 * llp::kCopiedPiece, 8000));
  REQUIRE_FALSE(b.post_recv(1, 0, contents.size()));
  REQUIRE_FALSE(a.qp.post_send({.sges = sges, .flags = SendFlags::signaled}));
  REQUIRE(completion_of(b.recv_cq, [&] { sockets.step(); }));
  CHECK(same(b.bytes(0, contents.size()), contents));
  CHECK(sockets.count("rc_zerocopy_sends") > 0);
  CHECK(sockets.count("tx_would_block") == 0);
}

}  // namespace diwarp::test
