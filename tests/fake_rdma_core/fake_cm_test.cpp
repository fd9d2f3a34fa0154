// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <future>
#include <thread>

#include "fake_rdma_core/fake_scene.h"

/// Ids of rdma_cm beyond a plain connection.

using namespace fake_test;
using namespace std::chrono_literals;

namespace {

sockaddr* generic(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

/// Tries without pause to bind a socket to a port of the loopback address, as another process may.
class PortThief {
 public:
  explicit PortThief(__be16 port)
      : thread_([this, port] {
          while (!stopped_ && !got_it_) got_it_ = binds(port);
        }) {}
  ~PortThief() {
    if (thread_.joinable()) stop();
  }
  /// Whether it got the port.
  bool stop() {
    stopped_ = true;
    thread_.join();
    return got_it_;
  }

 private:
  static bool binds(__be16 port) {
    sockaddr_in wanted = loopback(port);
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool bound = ::bind(descriptor, generic(wanted), sizeof wanted) == 0;
    ::close(descriptor);
    return bound;
  }

  std::atomic<bool> stopped_ = false;
  std::atomic<bool> got_it_ = false;
  std::thread thread_;
};

}  // namespace

TEST_CASE("fake rdma-core: a listener on all addresses has no device, its requests do") {
  const Fresh fresh;
  Channel channel;
  End end;
  rdma_cm_id* const listening = channel.id();
  sockaddr_in any = loopback();
  any.sin_addr.s_addr = INADDR_ANY;
  REQUIRE(api().bind_addr(listening, generic(any)) == 0);
  CHECK(listening->verbs == nullptr);
  REQUIRE(api().listen(listening, 1) == 0);
  rdma_cm_id* const id = channel.id();
  resolve(channel, id, api().get_src_port(listening));
  rdma_conn_param asks = parameters_for(end);
  REQUIRE(api().connect(id, &asks) == 0);
  rdma_cm_event* const request = channel.fetch(RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* const requested = request->id;
  CHECK(requested->verbs != nullptr);
  api().ack_cm_event(request);
  CHECK(api().destroy_id(requested) == 0);  // rejects
  channel.expect(RDMA_CM_EVENT_REJECTED, -ECONNRESET);
  CHECK(api().destroy_id(id) == 0);
  CHECK(api().destroy_id(listening) == 0);
}

TEST_CASE("fake rdma-core: a listener that goes rejects the requests that nobody fetched") {
  const Fresh fresh;
  Channel channel;
  End end;
  rdma_cm_id* const id = channel.id();
  {
    const Listener listener;
    resolve(channel, id, listener.port());
    rdma_conn_param asks = parameters_for(end);
    REQUIRE(api().connect(id, &asks) == 0);
    CHECK(readable(listener.channel.channel->fd));
  }
  channel.expect(RDMA_CM_EVENT_REJECTED, -ECONNRESET);
  CHECK(api().destroy_id(id) == 0);
}

TEST_CASE("fake rdma-core: an address without a device is refused, or an event tells") {
  const Fresh fresh;
  Channel channel;
  rdma_cm_id* const id = channel.id();
  sockaddr_in foreign = loopback();
  foreign.sin_addr.s_addr = inet_addr("192.0.2.1");
  CHECK(refusal([&] { return api().bind_addr(id, generic(foreign)); }) == ENODEV);
  REQUIRE(api().resolve_addr(id, nullptr, generic(foreign), 100) == 0);
  channel.expect(RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
  CHECK(api().destroy_id(id) == 0);
}

TEST_CASE("fake rdma-core: a port is bound once") {
  const Fresh fresh;
  const Listener listener;
  Channel channel;
  rdma_cm_id* const id = channel.id();
  sockaddr_in same = loopback(listener.port());
  CHECK(refusal([&] { return api().bind_addr(id, generic(same)); }) == EADDRINUSE);
  CHECK(api().destroy_id(id) == 0);
}

TEST_CASE("fake rdma-core: the port that an id is bound to is its own while it begins to listen") {
  const Fresh fresh;
  for (int round = 0; round < 200; ++round) {
    Channel channel;
    rdma_cm_id* const id = channel.id();
    sockaddr_in any_port = loopback();
    REQUIRE(api().bind_addr(id, generic(any_port)) == 0);
    PortThief thief(api().get_src_port(id));
    REQUIRE(api().listen(id, 1) == 0);
    CHECK_FALSE(thief.stop());
    CHECK(api().destroy_id(id) == 0);
  }
}

TEST_CASE("fake rdma-core: calls out of their order are refused") {
  const Fresh fresh;
  End end;
  Channel channel;
  rdma_cm_id* const id = channel.id();
  rdma_conn_param asks = parameters_for(end);
  CHECK(refusal([&] { return api().resolve_route(id, 100); }) == EINVAL);
  CHECK(refusal([&] { return api().connect(id, &asks); }) == EINVAL);
  CHECK(refusal([&] { return api().accept(id, &asks); }) == EINVAL);
  const Listener listener;
  resolve(channel, id, listener.port());
  asks.qp_num = 1;  // there is none
  CHECK(refusal([&] { return api().connect(id, &asks); }) == EINVAL);
  asks = parameters_for(end);
  asks.initiator_depth = 100;  // more than the device has
  CHECK(refusal([&] { return api().connect(id, &asks); }) == EINVAL);
  CHECK(api().destroy_id(id) == 0);
}

TEST_CASE("fake rdma-core: an id waits until its events are acknowledged") {
  const Fresh fresh;
  const Listener listener;
  Channel channel;
  rdma_cm_id* const id = channel.id();
  sockaddr_in peer = loopback(listener.port());
  REQUIRE(api().resolve_addr(id, nullptr, generic(peer), 100) == 0);
  rdma_cm_event* const event = channel.fetch(RDMA_CM_EVENT_ADDR_RESOLVED);
  std::future<int> ending = std::async(std::launch::async, [&] { return api().destroy_id(id); });
  CHECK(ending.wait_for(20ms) == std::future_status::timeout);
  api().ack_cm_event(event);
  CHECK(ending.get() == 0);
}

TEST_CASE("fake rdma-core: a Read that the peer refuses ends the connection") {
  Pair pair;
  ibv_send_wr read = End::request_of(IBV_WR_RDMA_READ, 1);
  read.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(pair.b.memory.data());
  read.wr.rdma.rkey = 0x100;  // names nothing: the peer ends the connection
  REQUIRE(pair.a.post(read, 0, 8) == 0);
  CHECK(pair.a.next().status != IBV_WC_SUCCESS);
  pair.channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  CHECK(api().disconnect(pair.id_a) == 0);  // it has ended: nothing to do
  ibv_async_event event = pair.b.next_async_event();
  CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
  api().ack_async_event(&event);
}

TEST_CASE("fake rdma-core: two devices of one process connect") {
  ::setenv("FAKE_RDMA_CORE_DEVICES", "fake0=127.0.0.1 fake1=127.0.0.2", 1);
  {
    const Fresh fresh;
    Channel channel;
    rdma_cm_id* const listening = channel.id();
    sockaddr_in second = loopback();
    second.sin_addr.s_addr = inet_addr("127.0.0.2");
    REQUIRE(api().bind_addr(listening, generic(second)) == 0);
    CHECK(std::string(listening->verbs->device->name) == "fake1");
    rdma_cm_id* const id = channel.id();
    sockaddr_in first = loopback();
    second.sin_port = api().get_src_port(listening);
    REQUIRE(api().resolve_addr(id, generic(first), generic(second), 100) == 0);
    CHECK(std::string(id->verbs->device->name) == "fake0");
    channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(api().destroy_id(id) == 0);
    CHECK(api().destroy_id(listening) == 0);
  }
  ::unsetenv("FAKE_RDMA_CORE_DEVICES");
  api().clear();
}
