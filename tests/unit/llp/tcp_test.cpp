// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/tcp_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "backends.h"
#include "diwarp/error.h"
#include "raw_socket.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::bytes_of;
using test::read_bytes;
using test::tcp_pair;
using test::text_of;
using test::text_pattern;

IoResult send_text(Stream& stream, std::string_view text) {
  const ConstBytes piece = bytes_of(text);
  return stream.send({&piece, 1});
}

/// A stream over one end of a connection, and the other end raw.
template <class TestType>
struct Connected {
  explicit Connected(int segment = 0) {
    auto [first, second] = tcp_pair(segment);
    stream = TestType::connect(first.release());
    peer = std::move(second);
  }
  std::unique_ptr<TcpStream> stream;
  UniqueFd peer;
};

BACKENDS_TEST_CASE("an adopted TCP descriptor is non-blocking, undelayed and closed on exec") {
  Connected<TestType> c;
  const int fd = c.stream->descriptor();
  CHECK((::fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(test::option_of(fd, IPPROTO_TCP, TCP_NODELAY) == 1);
}

BACKENDS_TEST_CASE("a TCP stream knows both addresses") {
  auto [first, second] = tcp_pair();
  const auto a = TestType::connect(first.release());
  const auto b = TestType::connect(second.release());
  CHECK(a->local_address() == b->peer_address());
  CHECK(b->local_address() == a->peer_address());
  CHECK(a->local_address().with_port(0) == Address::loopback(AddressFamily::ipv4));
}

BACKENDS_TEST_CASE("the pieces sent on a TCP stream arrive in order, and nothing else") {
  Connected<TestType> c;
  const std::array<ConstBytes, 4> pieces = {bytes_of("MPA"), bytes_of(""), bytes_of("\x00\x01"),
                                            bytes_of("FPDU")};
  const IoResult result = c.stream->send(pieces);
  CHECK(result.status == IoStatus::ok);
  CHECK(result.bytes == 3 + 4);
  c.stream->shutdown_send();
  CHECK(read_bytes(c.peer.get(), 100) == "MPAFPDU");
}

BACKENDS_TEST_CASE(
    "short pieces among long ones arrive in order, more of them than are put together") {
  Connected<TestType> c;
  const std::string text = text_pattern(30'000);
  std::vector<ConstBytes> pieces;
  size_t at = 0;
  for (const size_t length : {20U, 4000U, 4U, 20U, 64U, 4U, 512U, 513U, 5000U}) {
    pieces.push_back(bytes_of(std::string_view(text).substr(at, length)));
    at += length;
  }
  for (; at + 500 <= text.size(); at += 500)
    pieces.push_back(bytes_of(std::string_view(text).substr(at, 500)));
  const IoResult result = c.stream->send(pieces);
  REQUIRE(result.status == IoStatus::ok);
  REQUIRE(result.bytes == at);
  CHECK(read_bytes(c.peer.get(), at) == text.substr(0, at));
}

BACKENDS_TEST_CASE("several buffers are filled one after the other, as far as the stream goes") {
  Connected<TestType> c;
  std::array<std::byte, 3> first{};
  std::array<std::byte, 5> second{};
  const std::array<Bytes, 2> buffers{Bytes(first), Bytes(second)};
  CHECK(c.stream->receive_into(buffers).status == IoStatus::would_block);
  CHECK(c.stream->receive_into({}).status == IoStatus::would_block);
  REQUIRE(::send(c.peer.get(), "abcdefghij", 10, 0) == 10);
  REQUIRE(test::wait_input(*c.stream));
  CHECK(c.stream->receive_into(buffers).bytes == 8);
  CHECK(text_of(first) == "abc");
  CHECK(text_of(second) == "defgh");
  CHECK(c.stream->receive_into(buffers).bytes == 2);
  CHECK(text_of(first) == "ijc");
  c.peer.reset();
  REQUIRE(test::wait_input(*c.stream));
  CHECK(c.stream->receive_into(buffers).status == IoStatus::closed);
  c.stream->abort();
  CHECK(c.stream->receive_into(buffers).status == IoStatus::failed);
}

BACKENDS_TEST_CASE("more pieces than one system call takes are sent in parts") {
  Connected<TestType> c;
  const std::string text = text_pattern(3000);
  std::vector<ConstBytes> pieces;
  for (const char& letter : text) pieces.push_back(bytes_of({&letter, 1}));
  size_t sent = 0;
  while (sent < text.size()) {
    const IoResult result = c.stream->send(std::span(pieces).subspan(sent));
    REQUIRE(result.status == IoStatus::ok);
    if (sent == 0) CHECK(result.bytes == 1024);
    sent += result.bytes;
  }
  CHECK(read_bytes(c.peer.get(), text.size()) == text);
}

BACKENDS_TEST_CASE(
    "a TCP stream takes a part when its buffer fills, then nothing until there is room") {
  Connected<TestType> c;
  const std::string text = text_pattern(size_t{16} << 20);
  size_t sent = 0;
  IoResult result = send_text(*c.stream, text);
  REQUIRE(result.status == IoStatus::ok);
  CHECK(result.bytes < text.size());
  while (result.status == IoStatus::ok) {
    sent += result.bytes;
    result = send_text(*c.stream, std::string_view(text).substr(sent));
  }
  CHECK(result.status == IoStatus::would_block);
  CHECK(result.bytes == 0);
  CHECK(read_bytes(c.peer.get(), sent) == text.substr(0, sent));
  CHECK(send_text(*c.stream, "more").status == IoStatus::ok);
  CHECK(read_bytes(c.peer.get(), 4) == "more");
}

BACKENDS_TEST_CASE("a TCP stream receives what came, would block, and sees the orderly end") {
  Connected<TestType> c;
  std::array<std::byte, 16> buffer;
  CHECK(c.stream->receive(buffer).status == IoStatus::would_block);
  REQUIRE(::send(c.peer.get(), "abcdef", 6, 0) == 6);
  REQUIRE(test::wait_input(*c.stream));
  const IoResult first = c.stream->receive(Bytes(buffer).first(4));
  CHECK(first.status == IoStatus::ok);
  CHECK(text_of(Bytes(buffer).first(first.bytes)) == "abcd");
  const IoResult second = c.stream->receive(buffer);
  CHECK(text_of(Bytes(buffer).first(second.bytes)) == "ef");
  c.peer.reset();
  REQUIRE(test::wait_input(*c.stream));
  CHECK(c.stream->receive(buffer).status == IoStatus::closed);
}

BACKENDS_TEST_CASE(
    "all bytes of a long stream are received in order, however much is read at once") {
  for (const size_t room : {size_t{1000}, size_t{70000}, size_t{1} << 20}) {
    CAPTURE(room);
    Connected<TestType> c;
    const std::string text = text_pattern(size_t{4} << 20);
    std::thread writer([&] {
      for (size_t sent = 0; sent < text.size();) {
        const ssize_t part = ::send(c.peer.get(), text.data() + sent, text.size() - sent, 0);
        if (part <= 0) break;
        sent += static_cast<size_t>(part);
      }
    });
    std::string received;
    std::vector<std::byte> buffer(room);
    while (received.size() < text.size() && test::wait_input(*c.stream)) {
      const IoResult result = c.stream->receive(buffer);
      received += text_of(Bytes(buffer).first(result.bytes));
    }
    const bool same = received == text;
    if (!same) c.peer.reset();
    writer.join();
    CHECK(same);
  }
}

BACKENDS_TEST_CASE("an empty buffer or nothing to send moves nothing and is not the end") {
  Connected<TestType> c;
  REQUIRE(::send(c.peer.get(), "x", 1, 0) == 1);
  REQUIRE(test::wait_input(*c.stream));
  CHECK(c.stream->receive({}).status == IoStatus::would_block);
  CHECK(c.stream->send({}).status == IoStatus::would_block);
  CHECK(send_text(*c.stream, "").status == IoStatus::would_block);
}

BACKENDS_TEST_CASE("after shutdown_send the peer reads to the end and can still be heard") {
  Connected<TestType> c;
  REQUIRE(send_text(*c.stream, "bye").status == IoStatus::ok);
  c.stream->shutdown_send();
  CHECK(read_bytes(c.peer.get(), 100) == "bye");
  REQUIRE(::send(c.peer.get(), "ack", 3, 0) == 3);
  REQUIRE(test::wait_input(*c.stream));
  std::array<std::byte, 16> buffer;
  CHECK(c.stream->receive(buffer).bytes == 3);
}

BACKENDS_TEST_CASE("an aborted TCP stream resets the connection and fails from then on") {
  Connected<TestType> c;
  const int fd = c.stream->descriptor();
  c.stream->abort();
  CHECK_FALSE(test::is_open(fd));
  char byte = 0;
  CHECK(::recv(c.peer.get(), &byte, 1, 0) == -1);
  CHECK(errno == ECONNRESET);
  std::array<std::byte, 4> buffer;
  CHECK(c.stream->receive(buffer).status == IoStatus::failed);
  const IoResult result = send_text(*c.stream, "x");
  CHECK(result.status == IoStatus::failed);
  CHECK(result.error == ECONNABORTED);
  CHECK(c.stream->descriptor() == -1);
  CHECK(c.stream->maximum_segment() == 536);
  c.stream->abort();
  c.stream->shutdown_send();
}

BACKENDS_TEST_CASE("a reset by the peer is a failure with its errno") {
  Connected<TestType> c;
  test::reset_connection(std::move(c.peer));
  REQUIRE(test::wait_input(*c.stream));
  std::array<std::byte, 4> buffer;
  const IoResult result = c.stream->receive(buffer);
  CHECK(result.status == IoStatus::failed);
  CHECK(result.error == ECONNRESET);
}

BACKENDS_TEST_CASE("a reset after the peer's orderly end is told to a caller that asks for it") {
  Connected<TestType> c;
  std::array<std::byte, 8> buffer;
  ::shutdown(c.peer.get(), SHUT_WR);
  REQUIRE(test::wait_input(*c.stream));
  REQUIRE(c.stream->receive(buffer).status == IoStatus::closed);
  CHECK(c.stream->error() == 0);
  test::reset_connection(std::move(c.peer));
  CHECK(c.stream->error() != 0);
}

BACKENDS_TEST_CASE("bytes that came before a reset are received before the failure") {
  Connected<TestType> c;
  REQUIRE(::send(c.peer.get(), "abcdef", 6, 0) == 6);
  test::reset_connection(std::move(c.peer));
  c.stream->settle();
  std::array<std::byte, 3> first{};
  std::array<std::byte, 3> second{};
  std::array<std::byte, 3> third{};
  CHECK(c.stream->receive_into(std::array{Bytes(first), Bytes(second), Bytes(third)}).bytes == 6);
  CHECK(text_of(first) == "abc");
  CHECK(text_of(second) == "def");
  const IoResult result = c.stream->receive(first);
  CHECK(result.status == IoStatus::failed);
  CHECK(result.error == ECONNRESET);
}

volatile sig_atomic_t broken_pipes = 0;

BACKENDS_TEST_CASE("sending to a peer that is gone fails without SIGPIPE") {
  struct sigaction before {};
  struct sigaction counting {};
  counting.sa_handler = [](int) { broken_pipes = broken_pipes + 1; };
  REQUIRE(::sigaction(SIGPIPE, &counting, &before) == 0);
  Connected<TestType> c;
  c.stream->shutdown_send();
  const IoResult result = send_text(*c.stream, "x");
  ::sigaction(SIGPIPE, &before, nullptr);
  CHECK(result.status == IoStatus::failed);
  CHECK(result.error == EPIPE);
  CHECK(broken_pipes == 0);
}

BACKENDS_TEST_CASE("a destroyed TCP stream ends in order, or resets when bytes were left unread") {
  char byte = 0;
  Connected<TestType> read_out;
  read_out.stream.reset();
  CHECK(::recv(read_out.peer.get(), &byte, 1, 0) == 0);

  Connected<TestType> unread;
  REQUIRE(::send(unread.peer.get(), "x", 1, 0) == 1);
  REQUIRE(test::wait_input(*unread.stream));
  unread.stream.reset();
  CHECK(::recv(unread.peer.get(), &byte, 1, 0) == -1);
  CHECK(errno == ECONNRESET);
}

BACKENDS_TEST_CASE("the maximum segment is what the connection agreed on, options deducted") {
  Connected<TestType> c(1000);
  // Time stamps, where the system uses them, take 12 bytes of each segment (RFC 7323).
  const size_t segment = c.stream->maximum_segment();
  const bool expected = segment == 1000 || segment == 1000 - 12;
  CHECK(expected);
}

BACKENDS_TEST_CASE("a released descriptor stays open and usable") {
  Connected<TestType> c;
  const UniqueFd fd(c.stream->release());
  CHECK(c.stream->descriptor() == -1);
  c.stream.reset();
  REQUIRE(::send(fd.get(), "still", 5, 0) == 5);
  CHECK(read_bytes(c.peer.get(), 5) == "still");
}

BACKENDS_TEST_CASE("descriptors that are no connected TCP sockets are not adopted, and stay open") {
  const UniqueFd unconnected(::socket(AF_INET, SOCK_STREAM, 0));
  const UniqueFd local(::socket(AF_UNIX, SOCK_STREAM, 0));
  const test::RawUdp udp;
  for (int fd : {-1, unconnected.get(), local.get(), udp.fd()}) {
    try {
      TestType::connect(fd);
      FAIL("adopt() did not throw");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::invalid_argument);
      CHECK_THAT(error.what(),
                 Catch::Matchers::ContainsSubstring("Descriptor " + std::to_string(fd) + " "));
    }
    if (fd >= 0) CHECK(test::is_open(fd));
  }
}

}  // namespace
}  // namespace diwarp::llp
