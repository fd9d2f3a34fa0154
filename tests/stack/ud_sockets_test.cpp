// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <netinet/in.h>

#include <cstdio>
#include <map>

#include "stack/ipv6.h"
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

/// UD queue pairs on real sockets of this host.

namespace {

Address loopback4(uint16_t port) { return Address::loopback(AddressFamily::ipv4, port); }

/// One message there and one back, of one segment and of many.
void check_talk(Party& a, const Address& address_of_a, Party& b, const Address& address_of_b) {
  constexpr size_t kLongest = 100'000;  // what the smallest receive buffers hold
  for (size_t size : {size_t{0}, size_t{100}, kLongest}) {
    CAPTURE(size);
    const auto sent = pattern(size, size + 1);
    a.fill(sent);
    // Twice, as a message of many segments may hold only half of the receives.
    for (int i = 0; i < 2; ++i) REQUIRE_FALSE(b.post_recv(1, 0, kLongest));
    REQUIRE_FALSE(a.send(address_of_b, 0, size));
    const auto there = await(b.recv_cq, 1);
    REQUIRE(there.size() == 1);
    CHECK(there[0].status == WcStatus::success);
    CHECK(there[0].source == address_of_a);
    CHECK(same(b.bytes(0, size), sent));
    REQUIRE(await(a.send_cq, 1).size() == 1);

    for (int i = 0; i < 2; ++i) REQUIRE_FALSE(a.post_recv(2, 300'000, kLongest));
    REQUIRE_FALSE(b.send(there[0].source, 0, size));  // the source is where to answer
    const auto back = await(a.recv_cq, 1);
    REQUIRE(back.size() == 1);
    CHECK(back[0].source == address_of_b);
    CHECK(same(a.bytes(300'000, size), sent));
    REQUIRE(await(b.send_cq, 1).size() == 1);
  }
}

const PartyOptions kRoomy = {.memory = 600'000};

}  // namespace

TEST_CASE("queue pairs talk over UDP, with and without the kernel's offloads, in both modes") {
  const Progress progress = GENERATE(Progress::thread, Progress::manual);
  const bool segmentation = GENERATE(true, false);
  const bool coalescing = GENERATE(true, false);
  CAPTURE(segmentation, coalescing);
  Device device = Device::open(
      "127.0.0.1",
      {.progress = progress, .udp_segmentation = segmentation, .udp_coalescing = coalescing});
  Party a(device, kRoomy);
  Party b(device, kRoomy);
  check_talk(a, a.address(), b, b.address());
}

TEST_CASE("a device tells which of the kernel's offloads it was opened without", "[kernel]") {
  const bool segmentation = GENERATE(true, false);
  const bool coalescing = GENERATE(true, false);
  const Device device =
      Device::open("127.0.0.1", {.udp_segmentation = segmentation, .udp_coalescing = coalescing});
  const DatagramSocketAttributes sockets = device.query_datagram_sockets();
  const auto switched_off = [](const OffloadAttributes& offload) {
    return !offload.available && offload.refusal.find("opened without") != std::string::npos;
  };
  CHECK(switched_off(sockets.segmentation) == !segmentation);
  CHECK(switched_off(sockets.coalescing) == !coalescing);
  const std::string backend = device.query().datagram_backend;
  CHECK((backend.find("UDP_SEGMENT") != std::string::npos) == segmentation);
  CHECK((backend.find("UDP_GRO") != std::string::npos) == coalescing);
}

TEST_CASE("queue pairs talk over IPv6") {
  SKIP_WITHOUT_IPV6();
  Device one = Device::open("::1");
  Device two = Device::open("::1");
  Party a(one, kRoomy);
  Party b(two, kRoomy);
  CHECK(a.address().family() == AddressFamily::ipv6);
  check_talk(a, a.address(), b, b.address());
}

TEST_CASE("a device on all addresses receives on any of them", "[any]") {
  Device everywhere = Device::open("0.0.0.0");
  Device here = Device::open("127.0.0.1");
  Party a(here, kRoomy);
  Party b(everywhere, kRoomy);
  CHECK(b.address().is_any());
  check_talk(a, a.address(), b, loopback4(b.address().port()));
}

TEST_CASE("a device on all IPv6 addresses speaks IPv4 as well, and tells true sources", "[any]") {
  SKIP_WITHOUT_IPV6();
  Device everywhere = Device::open("::");
  Party b(everywhere, kRoomy);
  Device four = Device::open("127.0.0.1");
  Party a(four, kRoomy);
  check_talk(a, a.address(), b, loopback4(b.address().port()));
  Device six = Device::open("::1");
  Party c(six, kRoomy);
  check_talk(c, c.address(), b, Address::loopback(AddressFamily::ipv6, b.address().port()));
}

TEST_CASE("route headers of a device on all addresses name the one that was sent to", "[any]") {
  const Device everywhere = Device::open("0.0.0.0");
  PartyOptions options = kRoomy;
  options.datagram.route_header = true;
  for (const QpType type : {QpType::ud, QpType::rd}) {
    CAPTURE(to_string(type));
    options.type = type;
    Party target(everywhere, options);
    const Device here = Device::open("127.0.0.9");
    PartyOptions plain = kRoomy;
    plain.type = type;
    Party source(here, plain);
    source.fill(pattern(100, 1));
    for (const char* to : {"127.0.0.7", "127.0.0.8"}) {
      CAPTURE(to);
      const Address destination = Address::parse(to, target.address().port());
      REQUIRE_FALSE(target.post_recv(1, 0, 200));
      REQUIRE_FALSE(source.send(destination, 0, 100));
      const auto came = await(target.recv_cq, 1);
      REQUIRE(came.size() == 1);
      CHECK(came[0].byte_count == 140);
      CHECK(same(target.bytes(20, 4), std::as_bytes(source.address().bytes())));
      CHECK(same(target.bytes(36, 4), std::as_bytes(destination.bytes())));
      CHECK(same(target.bytes(40, 100), source.bytes(0, 100)));
    }
  }
}

TEST_CASE("a device on one IPv6 address refuses IPv4 destinations") {
  SKIP_WITHOUT_IPV6();
  Device device = Device::open("::1");
  Party party(device);
  CHECK(party.send(loopback4(5), 0, 10) == Errc::invalid_destination);
}

TEST_CASE("a queue pair can live on a bound descriptor that is handed in", "[kernel][plain]") {
  Device device = Device::open("127.0.0.1");
  RawSocket socket(loopback4(0));
  const Address address = socket.address();
  const int descriptor = socket.release();
  {
    PartyOptions options = kRoomy;
    options.datagram.descriptor = descriptor;
    Party a(device, options);
    CHECK(a.address() == address);
    CHECK(a.qp.number() == address.port());
    CHECK((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0);
    Party b(device, kRoomy);
    check_talk(a, a.address(), b, b.address());
  }
  CHECK(::fcntl(descriptor, F_GETFD) == -1);  // it belonged to the queue pair
}

TEST_CASE("a descriptor that is no bound UDP socket is refused, and stays the caller's") {
  Device device = Device::open("127.0.0.1");
  const auto adopt = [&](int descriptor) {
    return refusal([&] { Party(device, {.datagram = {.descriptor = descriptor}}); });
  };
  const UniqueFd unbound(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd stream(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd local(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const UniqueFd* fd : {&unbound, &stream, &local, &file}) {
    CHECK(adopt(fd->get()) == Errc::invalid_argument);
    CHECK(::fcntl(fd->get(), F_GETFD) != -1);
  }
  CHECK(adopt(1'000'000) == Errc::invalid_argument);
  CHECK(device.query().queue_pairs == 0);
}

TEST_CASE("a UDP port that another socket holds is refused with a message that names it") {
  Device device = Device::open("127.0.0.1");
  RawSocket holder(loopback4(0));
  const uint16_t port = holder.address().port();
  try {
    Party party(device, {.datagram = {.port = port}});
    FAIL("the port was given away twice");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::address_in_use);
    CHECK(error.code() == std::errc::address_in_use);
    CHECK_THAT(error.what(),
               Catch::Matchers::ContainsSubstring("127.0.0.1:" + std::to_string(port)));
  }
}

TEST_CASE("a queue pair takes the port it is given, and frees it at its end") {
  Device device = Device::open("127.0.0.1");
  uint16_t port = 0;
  {
    RawSocket probe(loopback4(0));
    port = probe.address().port();
  }
  for (int i = 0; i < 2; ++i) {
    Party party(device, {.datagram = {.port = port}});
    CHECK(party.qp.number() == port);
  }
}

TEST_CASE("a device cannot be opened on what is no address of this host") {
  for (const char* address : {"192.0.2.1", "2001:db8::1", "224.0.0.1", "ff02::1", "255.255.255.255",
                              "::ffff:127.0.0.1"}) {
    CAPTURE(address);
    try {
      Device::open(address);
      FAIL("it was opened");
    } catch (const Error& error) {
      CHECK(error.code());
      CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(address));
    }
  }
  for (const char* text : {"", "localhost", "127.0.0.1.1", "1.2.3.4:99999", "::g"}) {
    CAPTURE(text);
    CHECK(refusal([&] { Device::open(text); }) == Errc::invalid_argument);
  }
}

TEST_CASE("a raw socket's nonsense is counted, and the queue pair goes on") {
  Device device = Device::open("127.0.0.1");
  Party target(device);
  target.post_receives(8, 2000);
  RawSocket socket(loopback4(0));
  const auto good = to_bytes({.msn = 1, .payload = pattern(1000, 1)});
  auto truncated = good;
  truncated.resize(500);
  auto corrupt = good;
  corrupt[700] ^= std::byte{0x10};
  const auto text = std::as_bytes(std::span("GET / HTTP/1.1\r\nHost: www.example.org\r\n\r\n"));
  const struct {
    std::span<const std::byte> bytes;
    const char* counter;
  } wrong[] = {{{}, "drop_truncated"},
               {std::span(good).first(11), "drop_truncated"},
               {std::span(good).first(29), "drop_crc"},
               {truncated, "drop_crc"},
               {corrupt, "drop_crc"},
               {text, "drop_version"}};
  std::map<std::string, uint64_t> expected;
  for (const auto& [bytes, counter] : wrong) {
    socket.send(target.address(), bytes);
    ++expected[counter];
  }
  socket.send(target.address(), good);
  const auto completions = await(target.recv_cq, 1);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].byte_count == 1000);
  CHECK(completions[0].source == socket.address());
  for (const auto& [counter, count] : expected) {
    CAPTURE(counter);
    CHECK(device.counter(counter) == count);
  }
  CHECK(drops(device) == std::size(wrong));
}

TEST_CASE("sending to a port where nobody listens neither fails nor harms what follows",
          "[nobody]") {
  Device device = Device::open("127.0.0.1");
  Party a(device, kRoomy);
  Party b(device, kRoomy);
  uint16_t closed_port = 0;
  {
    RawSocket probe(loopback4(0));
    closed_port = probe.address().port();
  }
  for (int i = 0; i < 20; ++i) REQUIRE_FALSE(a.send(loopback4(closed_port), 0, 1000, 0));
  const auto sends = await(a.send_cq, 20);
  REQUIRE(sends.size() == 20);
  for (const WorkCompletion& completion : sends) CHECK(completion.status == WcStatus::success);
  check_talk(a, a.address(), b, b.address());
}

TEST_CASE("a destination that the network refuses fails with its errno, and others are reached",
          "[kernel]") {
  Device device = Device::open("::");
  Party a(device, kRoomy);
  Party b(device, kRoomy);
  // There is no such interface.
  REQUIRE_FALSE(a.send(Address::parse("[fe80::1%987654]:9"), 0, 100, 7, SendFlags::none));
  const auto failed = await(a.send_cq, 1);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].wr_id == 7);
  CHECK(failed[0].status == WcStatus::local_qp_operation_error);
  CHECK(failed[0].vendor_error != 0);
  check_talk(a, loopback4(a.address().port()), b, loopback4(b.address().port()));
}

TEST_CASE("a device on a loopback address is refused other hosts at once, and told why") {
  Device device = Device::open("127.0.0.1");
  Party a(device, kRoomy);
  Party b(device, kRoomy);
  const std::error_code error = a.send(Address::parse("192.0.2.1:9"), 0, 100);
  CHECK(error == Errc::loopback_device);
  CHECK(error == std::errc::network_unreachable);
  CHECK(error.message().find("reaches this host alone") != std::string::npos);
  CHECK(device.counter("loopback_to_remote") == 1);
  check_talk(a, a.address(), b, b.address());
}

TEST_CASE("segments of 65,507 bytes pass over loopback's MTU") {
  Device device = Device::open("127.0.0.1");
  PartyOptions options{.memory = size_t{4} << 20};
  options.datagram.segment = 65507;
  options.datagram.max_rate = 50'000'000;  // a small receive buffer holds no more than a few
  Party a(device, options);
  Party b(device, options);
  constexpr size_t kSize = 2'000'000;
  const auto sent = pattern(kSize, 3);
  a.fill(sent);
  for (int i = 0; i < 2; ++i) REQUIRE_FALSE(b.post_recv(1, 0, kSize));
  REQUIRE_FALSE(a.send(b.address(), 0, kSize));
  REQUIRE(await(b.recv_cq, 1).size() == 1);
  CHECK(same(b.bytes(0, kSize), sent));
  CHECK(device.counter("tx_datagrams") == (kSize + 65477 - 1) / 65477);
}

TEST_CASE("a message of 64 MiB arrives over UDP when it is paced") {
  constexpr size_t kSize = size_t{64} << 20;
  Device one = Device::open("127.0.0.1");
  Device two = Device::open("127.0.0.1");
  PartyOptions options{.memory = kSize};
  options.datagram.max_rate = 100'000'000;
  options.datagram.message_timeout = 20s;
  Party a(one, options);
  Party b(two, options);
  const auto sent = pattern(kSize, 9);
  a.fill(sent);
  // Where the receive buffer is small a busy machine may still lose a datagram: then once more.
  bool whole = false;
  for (int attempt = 0; attempt < 5 && !whole; ++attempt) {
    for (int i = 0; i < 2; ++i) REQUIRE_FALSE(b.post_recv(1, 0, kSize));
    REQUIRE_FALSE(a.send(b.address(), 0, kSize));
    REQUIRE(await(a.send_cq, 1).size() == 1);
    whole = await(b.recv_cq, 1, 2s).size() == 1;
    if (!whole) {
      WARN("lost: " << two.counter("rx_overflow") << " datagrams");
      a.qp.set_max_rate(a.qp.query().max_rate / 2);
    }
  }
  REQUIRE(whole);
  CHECK(same(b.memory, sent));
}
