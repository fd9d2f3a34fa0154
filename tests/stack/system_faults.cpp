// SPDX-License-Identifier: Apache-2.0
// Whole devices over real sockets whose system calls fail, whose buffers are the smallest, or whose
// path narrows: slower, counted, never wrong, never stuck.
#include <algorithm>

#include "stack/socket_exchange.h"
#include "support/child.h"
#include "support/confined.h"
#include "unit/llp/network_namespace.h"
#include "unit/llp/syscalls.h"
#include "unit/llp/zero_copy_support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Queue pairs on a socket of the application's, whose options of these names are 1.
PartyOptions options_with_socket(QpType type, std::initializer_list<int> names) {
  PartyOptions options = exchange_options(type);
  options.datagram.descriptor = RawSocket(Address::loopback(AddressFamily::ipv4)).release();
  const int one = 1;
  for (const int name : names)
    REQUIRE(::setsockopt(options.datagram.descriptor, SOL_SOCKET, name, &one, sizeof one) == 0);
  return options;
}

}  // namespace

TEST_CASE("faults: sending calls without room, every second one, over UDP sockets") {
  const QpType type = datagram_types();
  const int error = GENERATE(EAGAIN, ENOBUFS, ENOMEM);
  CAPTURE(error);
  Datagrams scene(type);
  FaultsForNow faults;
  faults->send_error = error;
  faults->send_every = 2;
  faults->receive_error = EAGAIN;
  faults->receive_every = 2;
  scene.run();
  CHECK(scene.count("tx_would_block") > 0);
  CHECK(scene.count("tx_errors") == 0);
}

TEST_CASE("faults: calls without room or of few bytes, over TCP sockets") {
  const int error = GENERATE(EAGAIN, ENOBUFS, ENOMEM);
  const uint32_t bytes = GENERATE(0U, 1000U);
  CAPTURE(error, bytes);
  Streams scene;
  FaultsForNow faults;
  faults->send_error = faults->receive_error = error;
  faults->send_every = faults->receive_every = 2;
  faults->stream_bytes = bytes;
  scene.run();
  CHECK(scene.count("tx_would_block") > 0);
}

TEST_CASE("faults: calls without room, every second one, with RNIC threads") {
  const int error = GENERATE(EAGAIN, ENOBUFS);
  CAPTURE(error);
  FaultsForNow faults;
  const auto begin = [&] {
    faults->send_error = error;
    faults->receive_error = EAGAIN;
    faults->send_every = faults->receive_every = 2;
  };
  SECTION("ud") {
    Datagrams scene(QpType::ud, kByThreads);
    begin();
    scene.run();
  }
  SECTION("rd") {
    Datagrams scene(QpType::rd, kByThreads);
    begin();
    scene.run();
  }
  SECTION("rc") {
    Streams scene(0, kByThreads);
    begin();
    scene.run();
  }
  CHECK(faults->injected > 0);
}

TEST_CASE(
    "faults: a thread that polled for long and then sleeps is woken, also where nothing can be "
    "watched") {
  FaultsForNow faults;
  const bool by_threads = GENERATE(false, true);
  const int error = GENERATE(0, ENOMEM, ENOSPC);
  CAPTURE(by_threads, error);
  DeviceOptions options = by_threads ? kByThreads : by_hand();
  options.spin = 0us;
  Sockets sockets(options);
  Party a(sockets.devices[0]);
  Party b(sockets.devices[1]);
  Streams streams(socket_streams(0), options);
  b.post_receives(8, 64);
  streams.b.post_receives(8, 64);
  for (uint64_t i = 0; i < 4; ++i) {
    // A thread that polls sees these; the RNIC threads, woken by them, see that a thread polls.
    REQUIRE_FALSE(a.send(b.address(), 0, 64));
    REQUIRE_FALSE(streams.a.send(0, 64));
    const Step look = [&] { streams.devices[0].progress(); };
    REQUIRE(completion_of(b.recv_cq, look));
    REQUIRE(completion_of(streams.b.recv_cq, look));
    // So often that sockets with input leave the poller, not so often that they come back.
    std::array<WorkCompletion, 1> none;
    for (int poll = 0; poll < 400; ++poll) {
      REQUIRE(b.recv_cq.poll(none) == 0);
      REQUIRE(streams.b.recv_cq.poll(none) == 0);
    }
    faults->watch_error = error;
    std::thread later([&] {
      std::this_thread::sleep_for(5ms);
      static_cast<void>(a.send(b.address(), 0, 64, i));
      std::this_thread::sleep_for(5ms);
      static_cast<void>(streams.a.send(0, 64, i));
    });
    const bool datagram_came = b.recv_cq.wait(kPatience).has_value();
    const bool stream_came = streams.b.recv_cq.wait(kPatience).has_value();
    later.join();
    REQUIRE(datagram_came);
    REQUIRE(stream_came);
    faults->watch_error = 0;
  }
}

TEST_CASE("faults: segmentation refused at run time, with whatever error, is counted once") {
  const QpType type = datagram_types();
  const int error = GENERATE(EIO, EINVAL, EMSGSIZE, EOPNOTSUPP);
  CAPTURE(error);
  Datagrams scene(type);
  FaultsForNow faults;
  faults->train_error = error;
  scene.run();
  const bool has_gso = scene.count("gso_missing") == 0;
  CHECK(scene.count("gso_refused") == (has_gso ? 2 : 0));
  CHECK(scene.count("tx_errors") == 0);
}

TEST_CASE("faults: kernels without UDP_SEGMENT and UDP_GRO are served and counted") {
  const QpType type = datagram_types();
  FaultsForNow faults;
  faults->udp_option_error = ENOPROTOOPT;
  Datagrams scene(type);
  scene.run();
  CHECK(scene.count("gso_missing") == 2);
  CHECK(scene.count("gro_missing") == 2);
}

TEST_CASE("faults: degradations of the sockets of groups are counted as those of others") {
  FaultsForNow faults;
  faults->udp_option_error = ENOPROTOOPT;
  Sockets sockets;
  Party party(sockets.devices[0]);
  CHECK(sockets.count("gro_missing") == 1);
  party.qp.join(Address::parse("239.77.3.9"));
  CHECK(sockets.count("gro_missing") == 2);
  CHECK(sockets.count("gso_missing") == 1);  // nothing is sent over them
}

TEST_CASE("faults: devices without offload have no fallback to count") {
  const QpType type = datagram_types();
  Datagrams scene(type, by_hand({.udp_segmentation = false, .udp_coalescing = false}));
  scene.run();
  CHECK(scene.count("gso_missing") + scene.count("gro_missing") + scene.count("gso_refused") == 0);
}

TEST_CASE("faults: the smallest buffers slow rd down, and lose nothing") {
  const bool offload = GENERATE(true, false);
  Datagrams scene(QpType::rd, by_hand({.udp_receive_buffer = 1,
                                       .udp_send_buffer = 1,
                                       .udp_segmentation = offload,
                                       .udp_coalescing = offload}));
  scene.run();
  // Datagrams that found no room are what it cost.
  CHECK(scene.count("rx_overflow") > 0);
  CHECK(scene.count("rd_retransmitted") > 0);
}

TEST_CASE("faults: the smallest buffers of an adopted socket slow rd down, and lose nothing") {
  Sockets sockets(by_hand({.udp_receive_buffer = 0, .udp_send_buffer = 0}));
  const auto adopted = [] { return options_with_socket(QpType::rd, {SO_RCVBUF, SO_SNDBUF}); };
  Party a(sockets.devices[0], adopted());
  Party b(sockets.devices[1], adopted());
  MemoryRegion region(b.pd, std::span(b.memory), kAllAccess);
  Exchange<Party>{a, b, b.address(), [&] { sockets.step(); }}.all(region);
}

TEST_CASE("faults: adopted sockets without checksums, for which no kernel segments, are counted") {
  const QpType type = datagram_types();
  Sockets sockets;
  Party a(sockets.devices[0], options_with_socket(type, {SO_NO_CHECK}));
  Party b(sockets.devices[1], options_with_socket(type, {SO_NO_CHECK}));
  MemoryRegion region(b.pd, std::span(b.memory), kAllAccess);
  Exchange<Party>{a, b, b.address(), [&] { sockets.step(); }}.all(region);
  const bool has_gso = sockets.count("gso_missing") == 0;
  CHECK(sockets.count("gso_refused") == (has_gso ? 2 : 0));
  CHECK(sockets.count("tx_errors") == 0);
}

TEST_CASE("faults: with the smallest buffers ud loses datagrams, reports it and stays usable") {
  PartyOptions options = exchange_options(QpType::ud);
  options.datagram.record_timeout = 50ms;
  options.datagram.read.timeout = 50ms;
  options.datagram.message_timeout = 50ms;
  const bool offload = GENERATE(true, false);
  Datagrams scene(options, by_hand({.udp_receive_buffer = 1,
                                    .udp_send_buffer = 1,
                                    .udp_segmentation = offload,
                                    .udp_coalescing = offload}));
  const auto contents = pattern(kLargeMessage, 3);
  scene.a.fill(contents);
  scene.b.fill(pattern(kLargeMessage, 4));
  const std::vector<std::byte> before = scene.b.memory;
  REQUIRE_FALSE(
      scene.a.qp.post_write_record({.wr_id = 1,
                                    .sges = {scene.a.mr.sge(0, kLargeMessage)},
                                    .destination = scene.b.address(),
                                    .remote = {scene.region.rkey(), scene.region.base()}}));
  const auto exchange = scene.exchange();
  exchange.demand_success(scene.a.send_cq);
  const auto record = completion_of(scene.b.recv_cq, exchange.step);
  REQUIRE(record);
  REQUIRE(record->validity.length() == kLargeMessage);
  CHECK_FALSE(record->validity.complete());
  for (auto [offset, length] : record->validity.ranges())
    CHECK(same(scene.b.bytes(offset, length), std::span(contents).subspan(offset, length)));
  for (auto [offset, length] : record->validity.gaps())
    CHECK(same(scene.b.bytes(offset, length), std::span(before).subspan(offset, length)));
  CHECK(scene.count("records_partial") == 1);

  // Each part of a Read that gets lost is asked for again, until the time is up.
  const Sge sge = scene.a.mr.sge(0, kLargeMessage);
  REQUIRE_FALSE(scene.a.qp.post_send({.wr_id = 2,
                                      .sges = {&sge, 1},
                                      .flags = SendFlags::signaled,
                                      .destination = scene.b.address(),
                                      .opcode = WrOpcode::rdma_read,
                                      .remote = {scene.region.rkey(), scene.region.base()}}));
  const auto read = completion_of(scene.a.send_cq, exchange.step);
  REQUIRE(read);
  for (auto [offset, length] : read->validity.ranges())
    CHECK(same(scene.a.bytes(offset, length), scene.b.bytes(offset, length)));
  if (read->status == WcStatus::success)
    CHECK(same(scene.a.bytes(0, kLargeMessage), scene.b.bytes(0, kLargeMessage)));
  exchange.send(64, 9);
  CHECK(scene.count("rx_overflow") > 0);
}

TEST_CASE("faults: the smallest send buffers slow rc down, and lose nothing") {
  Streams scene(1);
  scene.run();
  CHECK(scene.count("tx_would_block") > 0);
}

TEST_CASE("faults: the smallest buffers on both sides slow rc down, and lose nothing") {
  in_network_namespace([] {
    // A window of a loopback segment does not fit into such a buffer.
    REQUIRE(set_mtu("lo", 600));
    auto [first, second] = raw_pair(1);
    const int least = 1;
    for (const int fd : {first.descriptor(), second.descriptor()})
      REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least) == 0);
    Streams scene({stream_of(std::move(first)), stream_of(std::move(second))});
    const Exchange<RcParty> exchange{scene.a, scene.b, {}, [&] { scene.step(); }};
    for (const size_t size : {size_t{0}, size_t{64}, size_t{20000}}) {
      exchange.send(size, size + 1);
      exchange.write(size, size + 2, *scene.b.mr);
      exchange.read(size, size + 3, *scene.b.mr);
    }
  });
}

TEST_CASE("faults: jumbo datagrams give way to small ones where the send buffer cannot hold them") {
  const QpType type = datagram_types();
  in_network_namespace([&] {
    REQUIRE(set_mtu("lo", 1500));
    PartyOptions options = exchange_options(type, 0);
    options.datagram.jumbo = true;
    Datagrams scene(options, by_hand({.udp_send_buffer = 1}));
    scene.run();
    CHECK(scene.count("jumbo_refused") == 2);
  });
}

TEST_CASE("faults: an interface whose MTU shrinks in the middle of messages, over datagrams") {
  const QpType type = datagram_types();
  const bool offload = GENERATE(true, false);
  in_network_namespace([&] {
    REQUIRE(set_mtu("lo", 9000));
    Datagrams scene(exchange_options(type, 0),
                    by_hand({.udp_segmentation = offload, .udp_coalescing = offload}));
    scene.run();
    std::vector<int> sizes = {1500, 1300, 700};
    const auto shrink = [&] {
      if (sizes.empty()) return;
      REQUIRE(set_mtu("lo", sizes.front()));
      sizes.erase(sizes.begin());
    };
    const Exchange<Party> exchange{scene.a, scene.b, scene.b.address(), [&] {
                                     shrink();
                                     scene.step();
                                   }};
    exchange.write(kLargeMessage, 1, scene.region);
    sizes = {650};
    exchange.read(kLargeMessage, 2, scene.region);
    sizes = {400};
    exchange.send(kLargeMessage, 3);
    // Of each message a datagram was too long for what the path had become, and refused.
    CHECK(scene.count("tx_errors") >= 3);
    CHECK(scene.count("gso_refused") == 0);
  });
}

TEST_CASE("faults: an interface whose MTU shrinks in the middle of messages, over a stream") {
  in_network_namespace([] {
    REQUIRE(set_mtu("lo", 9000));
    Streams scene;
    std::vector<int> sizes = {1500, 1300, 700};
    const auto shrink = [&] {
      if (sizes.empty()) return;
      REQUIRE(set_mtu("lo", sizes.front()));
      sizes.erase(sizes.begin());
    };
    const Exchange<RcParty> exchange{scene.a, scene.b, {}, [&] {
                                       shrink();
                                       scene.step();
                                     }};
    exchange.write(kLargeMessage, 1, *scene.b.mr);
    exchange.read(kLargeMessage, 2, *scene.b.mr);
    exchange.send(kLargeMessage, 3);
  });
}

TEST_CASE("faults: buffers cut to the system's limits are counted, and rd works with them") {
  FaultsForNow faults;
  faults->forced_buffer_error = EPERM;
  Datagrams scene(QpType::rd, by_hand({.udp_receive_buffer = size_t{1} << 30,
                                       .udp_send_buffer = size_t{1} << 30}));
  CHECK(scene.count("rx_buffer_cut") == 2);
  CHECK(scene.count("tx_buffer_cut") == 2);
  scene.run();
}

TEST_CASE(
    "faults: busy polling that the system refuses is counted for each socket, and all works") {
  FaultsForNow faults;
  faults->busy_poll_error = EPERM;
  const DeviceOptions options = by_hand({.busy_poll = 50us});
  SECTION("rc") {
    Streams scene(0, options);
    CHECK(scene.count("busy_poll_refused") == 2);
    scene.run();
  }
  SECTION("ud") {
    Datagrams scene(QpType::ud, options);
    CHECK(scene.count("busy_poll_refused") == 2);
    scene.run();
  }
}

TEST_CASE("faults: zero-copy sends that the system refuses are copied, counted, and all works") {
  FaultsForNow faults;
  const DeviceOptions options = by_hand({.zerocopy_from = 4096});
  SECTION("for want of memory") {
    faults->zerocopy_error = ENOBUFS;
    Streams scene(0, options);
    scene.run();
    CHECK(scene.count("rc_zerocopy_no_memory") > 0);
    CHECK(scene.count("rc_zerocopy_refused") == 0);
  }
  SECTION("on the socket") {
    faults->zerocopy_option_error = EPERM;
    Streams scene(0, options);
    scene.run();
    CHECK(scene.count("rc_zerocopy_refused") == 2);
  }
  CHECK(faults->injected > 0);
}

TEST_CASE("faults: zero-copy sends of few bytes, and without room, over TCP sockets") {
  if (!may_send_zero_copy()) return;
  const uint32_t bytes = GENERATE(0U, 3000U);
  CAPTURE(bytes);
  Streams scene(0, by_hand({.zerocopy_from = 2000}));
  FaultsForNow faults;
  faults->send_error = faults->receive_error = EAGAIN;
  faults->send_every = faults->receive_every = 2;
  faults->stream_bytes = bytes;
  scene.run();
  CHECK(scene.count("rc_zerocopy_sends") > 0);
  CHECK(scene.count("rc_zerocopy_odd") == 0);
}

TEST_CASE("faults: no zero-copy Send or Write completes before the kernel has released it") {
  if (!may_send_zero_copy()) return;
  Streams scene(0, by_hand({.zerocopy_from = 4096}));
  FaultsForNow faults;
  faults->hide_notices = 1;
  REQUIRE_FALSE(scene.b.post_recv(1, 0, kLargeMessage));
  REQUIRE_FALSE(scene.a.send(0, 100'000, 1));
  REQUIRE(completion_of(scene.b.recv_cq, [&] { scene.step(); }));
  for (int i = 0; i < 1000; ++i) scene.step();
  CHECK(drain(scene.a.send_cq).empty());
  CHECK(scene.a.qp.state() == QpState::rts);
  faults->hide_notices = 0;
  const auto done = completion_of(scene.a.send_cq, [&] { scene.step(); });
  REQUIRE(done);
  CHECK(done->status == WcStatus::success);
}

TEST_CASE("faults: 64 KiB of memory that may be locked are enough for everything") {
  const DeviceOptions options = by_hand({.zerocopy_from = GENERATE(size_t{0}, size_t{4096})});
  CHECK(in_child([&] { return limit_locked_memory() && exchanges_all(options) ? 0 : 1; }) == 0);
}
