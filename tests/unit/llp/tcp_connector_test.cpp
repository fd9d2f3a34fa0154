// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/tcp_connector.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "backends.h"
#include "diwarp/error.h"
#include "llp/uring/uring_connector.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/descriptors.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::read_bytes;
using test::tcp_pair;
using test::text_of;

const Address kLoopback = Address::loopback(AddressFamily::ipv4);

bool ready(int fd, short events) {
  pollfd watched{fd, events, 0};
  return ::poll(&watched, 1, 5000) == 1;
}

/// The result, which must come.
ConnectResult connected(TcpConnector& connector, const Address& source, const Address& peer) {
  std::error_code error;
  const auto pending = connector.connect(source, peer, error);
  REQUIRE(pending);
  for (;;) {
    REQUIRE(ready(pending->descriptor(), POLLOUT));
    ConnectResult result = pending->finish();
    if (result.stream || result.error) return result;
  }
}

std::unique_ptr<Stream> accepted(StreamListener& listener) {
  REQUIRE(ready(listener.descriptor(), POLLIN));
  AcceptResult result = listener.accept();
  REQUIRE(result.status == AcceptStatus::accepted);
  REQUIRE(result.stream);
  return std::move(result.stream);
}

void check_carries(Stream& from, Stream& to, std::string_view text) {
  const ConstBytes piece = bytes_of(text);
  REQUIRE(from.send({&piece, 1}).bytes == text.size());
  REQUIRE(ready(to.descriptor(), POLLIN));
  std::array<std::byte, 64> buffer;
  const IoResult came = to.receive(buffer);
  REQUIRE(came.status == IoStatus::ok);
  CHECK(text_of(std::span(buffer).first(came.bytes)) == text);
}

template <class Call>
std::error_code error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return {};
}

}  // namespace

TEST_CASE("a connection that a listener accepts carries bytes both ways, and both know both ends") {
  TcpConnector connector;
  const AddressFamily family = GENERATE(AddressFamily::ipv4, AddressFamily::ipv6);
  const Address host = Address::loopback(family);
  const auto listener = connector.listen(host, {1});
  REQUIRE(listener->local_address().port() != 0);
  const auto result = connected(connector, host, listener->local_address());
  REQUIRE(result.stream);
  const auto other = accepted(*listener);
  CHECK(result.stream->peer_address() == listener->local_address());
  CHECK(other->local_address() == listener->local_address());
  CHECK(other->peer_address() == result.stream->local_address());
  CHECK(result.stream->local_address().with_port(0) == host);
  check_carries(*result.stream, *other, "there");
  check_carries(*other, *result.stream, "and back");
}

TEST_CASE("both ends of a connection are non-blocking, closed on exec, and delay nothing") {
  TcpConnector connector;
  const auto listener = connector.listen(kLoopback, {1});
  const auto result = connected(connector, kLoopback, listener->local_address());
  REQUIRE(result.stream);
  const auto other = accepted(*listener);
  for (const int fd : {result.stream->descriptor(), other->descriptor()}) {
    CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(test::option_of(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
  }
  CHECK((::fcntl(listener->descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a connection leaves from the source it was given, or from the system's choice") {
  TcpConnector connector;
  const auto listener = connector.listen(kLoopback, {2});
  const auto bound = connected(connector, Address::parse("127.0.0.2"), listener->local_address());
  REQUIRE(bound.stream);
  const Address source = bound.stream->local_address();
  CHECK(source.host() == "127.0.0.2");
  CHECK(source.port() != 0);
  const Address third = Address::parse("127.0.0.3", source.port());  // nobody else has it
  const auto named = connected(connector, third, listener->local_address());
  REQUIRE(named.stream);
  CHECK(named.stream->local_address() == third);
  const auto chosen =
      connected(connector, Address::any(AddressFamily::ipv4), listener->local_address());
  REQUIRE(chosen.stream);
  CHECK(chosen.stream->local_address().with_port(0) == kLoopback);
}

TEST_CASE("a connection to a port where nobody listens is refused") {
  TcpConnector connector;
  const Address gone = connector.listen(kLoopback, {1})->local_address();
  CHECK(connected(connector, kLoopback, gone).error == std::errc::connection_refused);
}

TEST_CASE("a connection to its own port, which nobody else serves, is refused") {
  TcpConnector connector;
  const Address own = connector.listen(kLoopback, {1})->local_address();  // its port is free again
  const auto result = connected(connector, own, own);
  CHECK(result.error == std::errc::connection_refused);
  CHECK_FALSE(result.stream);
  CHECK(connector.listen(own, {1})->local_address() == own);
}

TEST_CASE("a connection from an address of nobody's cannot be begun") {
  TcpConnector connector;
  std::error_code error;
  CHECK_FALSE(connector.connect(Address::parse("192.0.2.1"), kLoopback.with_port(9), error));
  CHECK(error == std::errc::address_not_available);
}

TEST_CASE("a connection that is given up before it is accepted is closed") {
  TcpConnector connector;
  const auto listener = connector.listen(kLoopback, {1});
  std::error_code error;
  auto pending = connector.connect(kLoopback, listener->local_address(), error);
  REQUIRE(pending);
  REQUIRE(ready(pending->descriptor(), POLLOUT));
  pending.reset();
  const auto stream = accepted(*listener);
  REQUIRE(ready(stream->descriptor(), POLLIN));
  std::array<std::byte, 1> byte;
  CHECK(stream->receive(byte).status == IoStatus::closed);
}

TEST_CASE("a listener has nothing to accept while nobody connects, and refuses nobody") {
  TcpConnector connector;
  const auto listener = connector.listen(kLoopback, {1});
  CHECK(listener->accept().status == AcceptStatus::none);
  CHECK(listener->refuse_next() == Refusal::nobody);
}

TEST_CASE(
    "a listener on all IPv6 addresses has the port of IPv4 as well, unless it is for IPv6 alone") {
  TcpConnector connector;
  const bool ipv6_only = GENERATE(false, true);
  const auto listener =
      connector.listen(Address::any(AddressFamily::ipv6), {.ipv6_only = ipv6_only});
  const uint16_t port = listener->local_address().port();
  const auto of_ipv4 = [&] { connector.listen(Address::any(AddressFamily::ipv4, port), {1}); };
  CHECK((error_of(of_ipv4) == make_error_code(Errc::address_in_use)) == !ipv6_only);
}

TEST_CASE("a port where somebody listens is in use, until that listener is gone") {
  TcpConnector connector;
  auto listener = connector.listen(kLoopback, {1});
  const Address address = listener->local_address();
  CHECK(error_of([&] { connector.listen(address, {1}); }) == make_error_code(Errc::address_in_use));
  listener.reset();
  CHECK_FALSE(error_of([&] { connector.listen(address, {1}); }));
  CHECK(error_of([&] { connector.listen(Address::parse("192.0.2.1"), {1}); }) ==
        std::errc::address_not_available);
}

TEST_CASE("without descriptors a listener says that one waits, and can refuse it all the same") {
  TcpConnector connector;
  const auto listener = connector.listen(kLoopback, {4});
  const auto peer = connected(connector, kLoopback, listener->local_address());
  REQUIRE(peer.stream);
  REQUIRE(ready(listener->descriptor(), POLLIN));
  std::optional<test::DescriptorLimit> limit(64);
  std::vector<UniqueFd> all;
  while (all.empty() || all.back()) all.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const AcceptStatus waiting = listener->accept().status;
  const Refusal refusal = listener->refuse_next();
  const AcceptStatus none = listener->accept().status;
  all.clear();
  limit.reset();
  CHECK(waiting == AcceptStatus::no_descriptor);
  CHECK(refusal == Refusal::refused);
  CHECK(none == AcceptStatus::none);
  REQUIRE(ready(peer.stream->descriptor(), POLLIN));
  CHECK(peer.stream->error() == ECONNRESET);
}

TEST_CASE("a connected descriptor is adopted, and one of another kind stays the caller's") {
  TcpConnector connector;
  auto [first, second] = tcp_pair();
  const auto stream = connector.adopt(first.release());
  const ConstBytes piece = bytes_of("adopted");
  REQUIRE(stream->send({&piece, 1}).bytes == 7);
  CHECK(read_bytes(second.get(), 7) == "adopted");
  const UniqueFd unconnected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  CHECK(error_of([&] { connector.adopt(unconnected.get()); }) ==
        make_error_code(Errc::invalid_argument));
  CHECK(::fcntl(unconnected.get(), F_GETFD) >= 0);
}

TEST_CASE("the source towards a peer is the device's address, or the route's choice") {
  TcpConnector connector;
  Address source;
  const Address peer = kLoopback.with_port(9);
  CHECK_FALSE(connector.find_source(Address::any(AddressFamily::ipv4), peer, source));
  CHECK(source == kLoopback);
  CHECK_FALSE(connector.find_source(Address::parse("127.0.0.3"), peer, source));
  CHECK(source == Address::parse("127.0.0.3"));
  CHECK(connector.find_source(Address::parse("192.0.2.1"), peer, source) ==
        std::errc::address_not_available);
}

TEST_CASE("a stream that leaves the engine is read by its descriptor, ring or not") {
  auto [first, writer] = tcp_pair();
  auto queue = test::Ring::make({});
  if (!queue) return;
  UringConnector connector(queue);
  const auto stream = connector.serve(connector.adopt(first.release()));
  CHECK(stream->input_queue() == queue.get());
  REQUIRE(::send(writer.get(), "brought", 7, 0) == 7);
  REQUIRE(test::wait_input(*stream));
  REQUIRE(stream->leave_engine());
  CHECK(stream->input_queue() == nullptr);
  REQUIRE(::send(writer.get(), "behind", 6, 0) == 6);
  REQUIRE(ready(stream->descriptor(), POLLIN));
  std::array<std::byte, 8> buffer;
  const IoResult came = stream->receive(buffer);
  CHECK(text_of(std::span(buffer).first(came.bytes)) == "behind");
}

}  // namespace diwarp::llp
