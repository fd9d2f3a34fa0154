// SPDX-License-Identifier: Apache-2.0
// Wrong arguments of librdmacm's functions, peers that are none, and what ends in the wrong order.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "drop_in/random/addresses.h"
#include "drop_in/scene.h"

using namespace drop_in;
using random_calls::SocketAddress;

namespace {

/// The errno value of a call that returned -1; 0: it did not.
template <class Call>
int error_of(Call&& call) {
  errno = 0;
  return call() == -1 ? errno : 0;
}

Owner<rdma_event_channel> make_channel() { return own(rdma_create_event_channel()); }

/// A socket of this process on loopback.
class Socket {
 public:
  explicit Socket(int type) : descriptor_(::socket(AF_INET, type | SOCK_CLOEXEC, 0)) {
    SocketAddress name("127.0.0.1", 0);
    REQUIRE(::bind(descriptor_, name.get(), name.length()) == 0);
    socklen_t length = name.length();
    REQUIRE(::getsockname(descriptor_, name.get(), &length) == 0);
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(name.get())->sin_port);
  }
  ~Socket() { ::close(descriptor_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int get() const { return descriptor_; }
  uint16_t port() const { return port_; }

 private:
  int descriptor_;
  uint16_t port_ = 0;
};

void make_queue_pair(rdma_cm_id* id) {
  ibv_qp_init_attr init{};
  init.cap = {.max_send_wr = 4,
              .max_recv_wr = 4,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  init.qp_type = id->qp_type;
  REQUIRE(rdma_create_qp(id, nullptr, &init) == 0);
}

/// Leads an id to a connection's beginning. Its events come on `channel`, which it has alone.
void begin_connection(rdma_event_channel* channel, rdma_cm_id* id, uint16_t port) {
  SocketAddress peer("127.0.0.1", port);
  REQUIRE(rdma_resolve_addr(id, nullptr, peer.get(), 1000) == 0);
  CHECK(wait_for_event(channel)->event == RDMA_CM_EVENT_ADDR_RESOLVED);
  REQUIRE(rdma_resolve_route(id, 1000) == 0);
  CHECK(wait_for_event(channel)->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
  make_queue_pair(id);
  rdma_conn_param parameters{};
  REQUIRE(rdma_connect(id, &parameters) == 0);
}

/// Answers each connection that comes with `answer` and its end, as a server that is no RDMA does,
/// until the channel has an event.
void serve_until_event(const Socket& listening, const rdma_event_channel* channel,
                       const std::string& answer) {
  constexpr int kMilliseconds = 30'000;
  std::array<pollfd, 2> watched{{{channel->fd, POLLIN, 0}, {listening.get(), POLLIN, 0}}};
  for (;;) {
    REQUIRE(::poll(watched.data(), watched.size(), kMilliseconds) > 0);
    if ((watched[0].revents & POLLIN) != 0) return;
    const int accepted = ::accept(listening.get(), nullptr, nullptr);
    REQUIRE(accepted >= 0);
    std::array<char, 64> request{};
    CHECK(::recv(accepted, request.data(), request.size(), 0) > 0);
    CHECK(::send(accepted, answer.data(), answer.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(answer.size()));
    ::close(accepted);
  }
}

/// A listener on a free port of loopback's.
struct Listener {
  Owner<rdma_event_channel> channel = make_channel();
  Owner<rdma_cm_id> id;

  explicit Listener(rdma_port_space space = RDMA_PS_TCP) : id(make_id(channel.get(), space)) {
    SocketAddress own_address("127.0.0.1", 0);
    REQUIRE(rdma_bind_addr(id.get(), own_address.get()) == 0);
    REQUIRE(rdma_listen(id.get(), 10) == 0);
  }
  uint16_t port() const { return ntohs(rdma_get_src_port(id.get())); }
};

}  // namespace

TEST_CASE("An id is bound to an address of this host, to a port that is free, and once") {
  const auto channel = make_channel();
  const Socket taken(SOCK_STREAM);
  const auto bind = [&](SocketAddress address) {
    const auto id = make_id(channel.get());
    return error_of([&] { return rdma_bind_addr(id.get(), address.get()); });
  };
  CHECK(bind({"192.0.2.1", 0}) == EADDRNOTAVAIL);
  CHECK(bind({"127.0.0.1", taken.port()}) == EADDRINUSE);
  CHECK(bind(SocketAddress::of_unknown_family()) == EINVAL);
  CHECK(bind({}) == EINVAL);
  for (const auto space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
    const auto id = make_id(channel.get(), space);
    SocketAddress address("0.0.0.0", 0);
    REQUIRE(rdma_bind_addr(id.get(), address.get()) == 0);
    CHECK(error_of([&] { return rdma_bind_addr(id.get(), address.get()); }) == EINVAL);
    REQUIRE(rdma_listen(id.get(), 1) == 0);
    CHECK(error_of([&] { return rdma_listen(id.get(), 1); }) == EINVAL);
    CHECK(error_of([&] { return rdma_bind_addr(id.get(), address.get()); }) == EINVAL);
  }
}

TEST_CASE("Port spaces that are not there are refused, and a channel that was destroyed") {
  auto channel = make_channel();
  rdma_cm_id* made = nullptr;
  const auto create = [&](int space) {
    return error_of([&] {
      return rdma_create_id(channel.get(), &made, nullptr, static_cast<rdma_port_space>(space));
    });
  };
  CHECK(create(RDMA_PS_IB) == EOPNOTSUPP);
  CHECK(create(RDMA_PS_IPOIB) == EOPNOTSUPP);
  CHECK(create(0x1ff) == EINVAL);
  rdma_event_channel* const gone = channel.release();
  rdma_destroy_event_channel(gone);
  CHECK(error_of([&] { return rdma_create_id(gone, &made, nullptr, RDMA_PS_TCP); }) == EINVAL);
  rdma_cm_event* event = nullptr;
  CHECK(error_of([&] { return rdma_get_cm_event(gone, &event); }) == EINVAL);
  CHECK(made == nullptr);
}

TEST_CASE("A step of an id that comes too early, twice, or is not its own, is refused") {
  const auto channel = make_channel();
  rdma_conn_param parameters{};
  for (const auto space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
    INFO("port space " << space);
    const auto id = make_id(channel.get(), space);
    rdma_cm_id* const it = id.get();
    CHECK(error_of([&] { return rdma_resolve_route(it, 1000); }) == EINVAL);
    CHECK(error_of([&] { return rdma_connect(it, &parameters); }) == EINVAL);
    CHECK(error_of([&] { return rdma_accept(it, &parameters); }) == EINVAL);
    CHECK(error_of([&] { return rdma_reject(it, nullptr, 0); }) == EINVAL);
    CHECK(error_of([&] { return rdma_disconnect(it); }) == EINVAL);
    CHECK(error_of([&] { return rdma_establish(it); }) == EINVAL);
    SocketAddress peer("127.0.0.1", 4711);
    REQUIRE(rdma_resolve_addr(it, nullptr, peer.get(), 1000) == 0);
    CHECK(wait_for_event(channel.get())->event == RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(error_of([&] { return rdma_resolve_addr(it, nullptr, peer.get(), 1000); }) == EINVAL);
    CHECK(error_of([&] { return rdma_listen(it, 1); }) == EINVAL);
    REQUIRE(rdma_resolve_route(it, 1000) == 0);
    CHECK(wait_for_event(channel.get())->event == RDMA_CM_EVENT_ROUTE_RESOLVED);
    CHECK(error_of([&] { return rdma_resolve_route(it, 1000); }) == EINVAL);
  }
}

TEST_CASE("Options of another size, and unknown ones, are refused") {
  const auto channel = make_channel();
  const auto id = make_id(channel.get());
  int value = 1;
  const auto set = [&](int level, int option, size_t length) {
    return error_of([&] { return rdma_set_option(id.get(), level, option, &value, length); });
  };
  CHECK(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1) == 0);
  CHECK(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4) == EINVAL);
  CHECK(set(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1) == EINVAL);
  CHECK(set(RDMA_OPTION_ID, 77, 4) == ENOSYS);
  CHECK(set(7, RDMA_OPTION_ID_TOS, 1) == ENOSYS);
}

TEST_CASE("Of two listeners on one port one is for IPv4 and one for IPv6 alone, in either order") {
  const bool ipv6_first = GENERATE(true, false);
  const auto channel = make_channel();
  const auto first = make_id(channel.get());
  const auto second = make_id(channel.get());
  rdma_cm_id* const of_ipv6 = ipv6_first ? first.get() : second.get();
  int on = 1;
  REQUIRE(rdma_set_option(of_ipv6, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof on) == 0);
  const auto listen = [](rdma_cm_id* id, const char* address, uint16_t port) {
    SocketAddress own(address, port);
    return error_of([&] { return rdma_bind_addr(id, own.get()) != 0 ? -1 : rdma_listen(id, 1); });
  };
  REQUIRE(listen(first.get(), ipv6_first ? "::" : "0.0.0.0", 0) == 0);
  const uint16_t port = be16toh(rdma_get_src_port(first.get()));
  CHECK(listen(second.get(), ipv6_first ? "0.0.0.0" : "::", port) == 0);
}

TEST_CASE("A listener on all IPv6 addresses has the port of IPv4 as well") {
  const auto channel = make_channel();
  const auto both = make_id(channel.get());
  SocketAddress all("::", 0);
  REQUIRE(rdma_bind_addr(both.get(), all.get()) == 0);
  REQUIRE(rdma_listen(both.get(), 1) == 0);
  const auto other = make_id(channel.get());
  SocketAddress taken("0.0.0.0", be16toh(rdma_get_src_port(both.get())));
  CHECK(error_of([&] {
          return rdma_bind_addr(other.get(), taken.get()) != 0 ? -1 : rdma_listen(other.get(), 1);
        }) == EADDRINUSE);
}

TEST_CASE("Depths beyond the device's are refused, and private data that do not fit") {
  const auto channel = make_channel();
  const auto id = make_id(channel.get());
  SocketAddress peer("127.0.0.1", 4711);
  REQUIRE(rdma_resolve_addr(id.get(), nullptr, peer.get(), 1000) == 0);
  wait_for_event(channel.get());
  REQUIRE(rdma_resolve_route(id.get(), 1000) == 0);
  wait_for_event(channel.get());
  rdma_conn_param parameters{};
  CHECK(error_of([&] { return rdma_connect(id.get(), &parameters); }) == EINVAL);  // no queue pair
  make_queue_pair(id.get());
  parameters.initiator_depth = 129;
  CHECK(error_of([&] { return rdma_connect(id.get(), &parameters); }) == EINVAL);
  parameters.initiator_depth = 1;
  parameters.responder_resources = 129;
  CHECK(error_of([&] { return rdma_connect(id.get(), &parameters); }) == EINVAL);
}

TEST_CASE("A queue pair that cannot be made leaves the parameters as they are, and the id") {
  const auto channel = make_channel();
  const auto id = make_id(channel.get());
  ibv_qp_init_attr_ex init{};
  init.qp_type = IBV_QPT_RC;
  init.cap = {.max_send_wr = 4,
              .max_recv_wr = 4,
              .max_send_sge = 65,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  CHECK(error_of([&] { return rdma_create_qp_ex(id.get(), &init); }) == EINVAL);  // no device yet
  SocketAddress own_address("127.0.0.1", 0);
  REQUIRE(rdma_resolve_addr(id.get(), nullptr, own_address.get(), 1000) == 0);
  wait_for_event(channel.get());
  CHECK(error_of([&] { return rdma_create_qp_ex(id.get(), &init); }) == EINVAL);
  CHECK(init.send_cq == nullptr);
  CHECK(init.recv_cq == nullptr);
  CHECK(init.comp_mask == 0);
  CHECK(id->qp == nullptr);
  CHECK(id->send_cq == nullptr);
  init.cap.max_send_sge = 1;
  CHECK(rdma_create_qp_ex(id.get(), &init) == 0);
  CHECK(error_of([&] { return rdma_create_qp_ex(id.get(), &init); }) == EINVAL);  // it has one
}

TEST_CASE("An id whose queue pair libibverbs has destroyed does not use it") {
  const auto channel = make_channel();
  for (const auto space : {RDMA_PS_TCP, RDMA_PS_UDP}) {
    const auto id = make_id(channel.get(), space);
    SocketAddress own_address("127.0.0.1", 0);
    REQUIRE(rdma_bind_addr(id.get(), own_address.get()) == 0);
    SocketAddress peer("127.0.0.1", 4711);
    REQUIRE(rdma_resolve_addr(id.get(), nullptr, peer.get(), 1000) == 0);
    wait_for_event(channel.get());
    REQUIRE(rdma_resolve_route(id.get(), 1000) == 0);
    wait_for_event(channel.get());
    make_queue_pair(id.get());
    if (space == RDMA_PS_UDP) {
      SocketAddress group("239.255.77.9", 0);
      REQUIRE(rdma_join_multicast(id.get(), group.get(), nullptr) == 0);
      CHECK(wait_for_event(channel.get())->event == RDMA_CM_EVENT_MULTICAST_JOIN);
    }
    REQUIRE(ibv_destroy_qp(id->qp) == 0);
    rdma_conn_param parameters{};
    if (space == RDMA_PS_TCP)
      CHECK(error_of([&] { return rdma_connect(id.get(), &parameters); }) == EINVAL);
  }
}

// --- Peers that are none.

TEST_CASE("Where nobody listens the connection is rejected") {
  const Socket closed(SOCK_STREAM);
  const auto channel = make_channel();
  const auto id = make_id(channel.get());
  begin_connection(channel.get(), id.get(), closed.port());
  const CmEvent event = wait_for_event(channel.get());
  CHECK(event->event == RDMA_CM_EVENT_REJECTED);
  CHECK(event->status == -ECONNREFUSED);
}

/// A client of MPA comes twice: a peer that closes the first connection may know revision 1 alone.
TEST_CASE("A listener that is no RDMA ends the connection with an event") {
  const Socket plain(SOCK_STREAM);
  REQUIRE(::listen(plain.get(), 1) == 0);
  for (const bool talks : {false, true}) {
    const auto channel = make_channel();
    const auto id = make_id(channel.get());
    begin_connection(channel.get(), id.get(), plain.port());
    serve_until_event(plain, channel.get(), talks ? "HTTP/1.1 400 Bad Request\r\n\r\n" : "");
    const CmEvent event = wait_for_event(channel.get());
    if (talks)
      CHECK(event->event == RDMA_CM_EVENT_CONNECT_ERROR);
    else
      CHECK(event->event == RDMA_CM_EVENT_REJECTED);
    CHECK(event->status < 0);
  }
}

TEST_CASE("A UD service that is not there is unreachable") {
  const Socket closed(SOCK_DGRAM);
  uint16_t port = closed.port();
  const auto channel = make_channel();
  const auto id = make_id(channel.get(), RDMA_PS_UDP);
  {
    const Listener gone(RDMA_PS_UDP);
    port = gone.port();
  }
  begin_connection(channel.get(), id.get(), port);
  const CmEvent event = wait_for_event(channel.get());
  CHECK(event->event == RDMA_CM_EVENT_UNREACHABLE);
  CHECK(event->status == -ECONNREFUSED);
}

// --- Ends in the wrong order.

TEST_CASE("A listener is destroyed with requests that nobody fetched, and their peers are told") {
  const auto channel = make_channel();
  const auto id = make_id(channel.get());
  {
    const Listener listener;
    begin_connection(channel.get(), id.get(), listener.port());
    pollfd watched{listener.channel->fd, POLLIN, 0};
    REQUIRE(::poll(&watched, 1, 30'000) == 1);
  }
  const auto type = wait_for_event(channel.get())->event;
  CHECK((type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_CONNECT_ERROR));
}

TEST_CASE("An id is destroyed when its event is acknowledged, and not before") {
  const auto channel = make_channel();
  auto id = make_id(channel.get());
  SocketAddress peer("127.0.0.1", 4711);
  REQUIRE(rdma_resolve_addr(id.get(), nullptr, peer.get(), 1000) == 0);
  CmEvent event = wait_for_event(channel.get());
  rdma_cm_event* const fetched = event.release();
  std::atomic<bool> acknowledged{false};
  std::thread thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    acknowledged = true;
    rdma_ack_cm_event(fetched);
  });
  id.reset();
  CHECK(acknowledged);
  thread.join();
}

TEST_CASE("Ids and events are destroyed and acknowledged once") {
  const auto channel = make_channel();
  rdma_cm_id* const id = make_id(channel.get()).release();
  SocketAddress peer("127.0.0.1", 4711);
  REQUIRE(rdma_resolve_addr(id, nullptr, peer.get(), 1000) == 0);
  rdma_cm_event* const event = wait_for_event(channel.get()).release();
  CHECK(rdma_ack_cm_event(event) == 0);
  CHECK(error_of([&] { return rdma_ack_cm_event(event); }) == EINVAL);
  CHECK(rdma_destroy_id(id) == 0);
  CHECK(error_of([&] { return rdma_destroy_id(id); }) == EINVAL);
  CHECK(error_of([&] { return rdma_resolve_route(id, 1000); }) == EINVAL);
}

TEST_CASE("Of two threads that destroy the same id one does") {
  const auto channel = make_channel();
  for (int round = 0; round < 50; ++round) {
    rdma_cm_id* const id =
        make_id(channel.get(), round % 2 == 0 ? RDMA_PS_TCP : RDMA_PS_UDP).release();
    std::atomic<int> ready{0};
    std::array<int, 2> results{};
    const auto destroy = [&](int& result) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      result = rdma_destroy_id(id);
    };
    std::thread thread(destroy, std::ref(results[0]));
    destroy(results[1]);
    thread.join();
    CHECK(results[0] + results[1] == -1);
  }
}

TEST_CASE("A channel is destroyed before its ids, which go without events") {
  auto channel = make_channel();
  const auto id = make_id(channel.get());
  SocketAddress peer("127.0.0.1", 4711);
  REQUIRE(rdma_resolve_addr(id.get(), nullptr, peer.get(), 1000) == 0);
  channel.reset();
  CHECK(rdma_resolve_route(id.get(), 1000) == 0);
  const auto next = make_channel();
  CHECK(rdma_migrate_id(id.get(), next.get()) == 0);
  make_queue_pair(id.get());
}

TEST_CASE("A synchronous id is destroyed although the program has destroyed its channel") {
  const auto id = make_id(nullptr);
  rdma_destroy_event_channel(id->channel);
  SocketAddress peer("127.0.0.1", 4711);
  CHECK(error_of([&] { return rdma_resolve_addr(id.get(), nullptr, peer.get(), 1000); }) == EBADF);
}

// --- Addresses.

TEST_CASE("Hints that have a length, and no address, are refused") {
  rdma_addrinfo hints{};
  rdma_addrinfo* found = nullptr;
  hints.ai_src_len = sizeof(sockaddr_in);
  CHECK(error_of([&] { return rdma_getaddrinfo(nullptr, nullptr, &hints, &found); }) == EINVAL);
  hints.ai_src_len = 0;
  hints.ai_dst_len = sizeof(sockaddr_in);
  CHECK(error_of([&] { return rdma_getaddrinfo(nullptr, nullptr, &hints, &found); }) == EINVAL);
  CHECK(error_of([&] { return rdma_getaddrinfo(nullptr, nullptr, nullptr, &found); }) == EINVAL);
  CHECK(found == nullptr);
}
