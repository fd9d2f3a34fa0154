// SPDX-License-Identifier: Apache-2.0
#include "raw_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <exception>
#include <iostream>
#include <thread>

#include "support/bytes.h"
#include "support/catch.h"

namespace diwarp::test {
namespace {

constexpr int kWaitMs = 5000;

struct Name {
  explicit Name(const Address& address) { length = address.to_sockaddr(storage); }
  Name() = default;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  sockaddr_storage storage{};
  socklen_t length = sizeof(sockaddr_storage);
};

int domain_of(const Address& address) {
  return address.family() == AddressFamily::ipv4 ? AF_INET : AF_INET6;
}

Address local_name(int fd) {
  Name name;
  REQUIRE(::getsockname(fd, name.get(), &name.length) == 0);
  return Address::from_sockaddr(name.get());
}

void bound_reads(int fd) {
  const timeval limit{kWaitMs / 1000, 0};
  REQUIRE(::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
}

}  // namespace

RawUdp::RawUdp(const Address& local) : fd_(::socket(domain_of(local), SOCK_DGRAM, 0)) {
  REQUIRE(fd_);
  Name name(local);
  REQUIRE(::bind(fd_.get(), name.get(), name.length) == 0);
  bound_reads(fd_.get());
}

Address RawUdp::address() const { return local_name(fd_.get()); }

bool RawUdp::coalesce() {
  const int on = 1;
  return ::setsockopt(fd_.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
}

void RawUdp::connect(const Address& to) {
  Name name(to);
  REQUIRE(::connect(fd_.get(), name.get(), name.length) == 0);
}

bool RawUdp::send(const Address& to, std::string_view bytes, int segment) {
  Name name(to);
  iovec piece = {const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(uint16_t))> control{};
  msghdr header{};
  header.msg_name = name.get();
  header.msg_namelen = name.length;
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (segment != 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* message = CMSG_FIRSTHDR(&header);
    message->cmsg_level = IPPROTO_UDP;
    message->cmsg_type = UDP_SEGMENT;
    message->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    const auto size = static_cast<uint16_t>(segment);
    std::memcpy(CMSG_DATA(message), &size, sizeof size);
  }
  return ::sendmsg(fd_.get(), &header, 0) == static_cast<ssize_t>(bytes.size());
}

std::optional<RawMessage> RawUdp::receive() {
  RawMessage result;
  result.bytes.resize(65536);
  Name name;
  iovec piece = {result.bytes.data(), result.bytes.size()};
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr header{};
  header.msg_name = name.get();
  header.msg_namelen = name.length;
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(fd_.get(), &header, 0);
  if (size < 0) return std::nullopt;
  result.bytes.resize(static_cast<size_t>(size));
  result.from = Address::from_sockaddr(name.get());
  for (cmsghdr* message = CMSG_FIRSTHDR(&header); message != nullptr;
       message = CMSG_NXTHDR(&header, message)) {
    if (message->cmsg_level == IPPROTO_UDP && message->cmsg_type == UDP_GRO) {
      std::memcpy(&result.segment, CMSG_DATA(message), sizeof result.segment);
    }
  }
  return result;
}

bool RawUdp::readable() const {
  pollfd polled = {fd_.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

std::pair<UniqueFd, UniqueFd> tcp_pair(int segment) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM, 0));
  Name local(Address::loopback(AddressFamily::ipv4));
  REQUIRE(::bind(listener.get(), local.get(), local.length) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  UniqueFd first(::socket(AF_INET, SOCK_STREAM, 0));
  if (segment != 0) {
    REQUIRE(::setsockopt(first.get(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment) == 0);
  }
  Name target(local_name(listener.get()));
  REQUIRE(::connect(first.get(), target.get(), target.length) == 0);
  UniqueFd second(::accept(listener.get(), nullptr, nullptr));
  REQUIRE(second);
  bound_reads(first.get());
  bound_reads(second.get());
  return {std::move(first), std::move(second)};
}

void reset_connection(UniqueFd fd) {
  const linger at_once{1, 0};
  REQUIRE(::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) == 0);
}

std::string read_bytes(int fd, size_t size) {
  std::string result(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::recv(fd, result.data() + done, size - done, 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  result.resize(done);
  return result;
}

bool has_trains(bool segments, bool coalesces) {
  if (segments && coalesces) return true;
  std::cout << "SKIPPED: the kernel has no UDP_SEGMENT or UDP_GRO\n";
  return false;
}

int option_of(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  return ::getsockopt(fd, level, name, &value, &length) == 0 ? value : -1;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

bool wait_readable(int fd) {
  pollfd polled = {fd, POLLIN, 0};
  return ::poll(&polled, 1, kWaitMs) == 1;
}

std::vector<std::string> receive_texts(llp::DatagramLink& link, llp::ReceiveBatch& batch,
                                       size_t count) {
  std::vector<std::string> result;
  while (result.size() < count && wait_input(link)) {
    link.receive(batch);
    for (const llp::IncomingDatagram& datagram : batch.datagrams()) {
      result.push_back(text_of(datagram.bytes));
    }
  }
  return result;
}

}  // namespace diwarp::test
