// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "common/failure.h"
#include "common/socket.h"
#include "compare/plain_socket.h"
#include "compare/socket_lanes.h"
#include "compare/stream_lane.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

namespace diwarp::tools {
namespace {

/// The bytes that are sent and received in one system call.
constexpr size_t kBatch = 64;

class UdpBatches final : public StreamLane {
 public:
  UdpBatches(const Place& place, size_t size)
      : StreamLane(place.control), pair_(make_udp_pair(place, true)), memory_(kBatch * size) {
    for (size_t i = 0; i < kBatch; ++i) {
      pieces_[i] = {.iov_base = memory_.data() + i * size, .iov_len = size};
      messages_[i].msg_hdr.msg_iov = &pieces_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
    }
  }

 private:
  uint64_t send() override {
    return count(::sendmmsg(pair_.fd.get(), messages_.data(), kBatch, MSG_DONTWAIT), "send");
  }
  uint64_t receive() override {
    return count(::recvmmsg(pair_.fd.get(), messages_.data(), kBatch, MSG_DONTWAIT, nullptr),
                 "receive");
  }

  static uint64_t count(int done, const char* what) {
    if (done < 0 && !would_block(done) && errno != ENOBUFS) fail_socket(what);
    return static_cast<uint64_t>(std::max(done, 0));
  }

  UdpPair pair_;
  std::vector<std::byte> memory_;
  std::array<iovec, kBatch> pieces_{};
  std::array<mmsghdr, kBatch> messages_{};
};

bool takes(int fd, int option, int value) {
  return setsockopt(fd, IPPROTO_UDP, option, &value, sizeof value) == 0;
}

class UdpTrains final : public StreamLane {
 public:
  UdpTrains(const Place& place, size_t segment)
      : StreamLane(place.control),
        pair_(make_udp_pair(place, true)),
        memory_(kLongest),
        train_(std::clamp<size_t>(kLongest / segment, 1, kBatch) * segment) {
    const bool split = takes(pair_.fd.get(), UDP_SEGMENT, static_cast<int>(segment));
    if (!split || !takes(pair_.fd.get(), UDP_GRO, 1)) fail_socket("use GSO and GRO");
  }

 private:
  static constexpr size_t kLongest = 65507;

  uint64_t send() override {
    const ssize_t done = ::send(pair_.fd.get(), memory_.data(), train_, MSG_DONTWAIT);
    if (done < 0 && !would_block(done) && errno != ENOBUFS) fail_socket("send");
    return static_cast<uint64_t>(std::max<ssize_t>(done, 0));
  }
  uint64_t receive() override {
    const ssize_t got = ::recv(pair_.fd.get(), memory_.data(), memory_.size(), MSG_DONTWAIT);
    if (got < 0 && !would_block(got)) fail_socket("receive");
    return static_cast<uint64_t>(std::max<ssize_t>(got, 0));
  }

  UdpPair pair_;
  std::vector<std::byte> memory_;
  size_t train_;
};

class TcpStream final : public StreamLane {
 public:
  TcpStream(const Place& place, size_t size)
      : StreamLane(place.control), fd_(make_tcp_connection(place)), memory_(size) {}

 private:
  uint64_t send() override {
    const ssize_t done =
        ::send(fd_.get(), memory_.data() + at_, memory_.size() - at_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done < 0 && !would_block(done)) fail_socket("send");
    return moved(done);
  }
  uint64_t receive() override {
    const ssize_t got = ::recv(fd_.get(), memory_.data() + at_, memory_.size() - at_, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !would_block(got))) fail_socket("receive");
    return moved(got);
  }

  uint64_t moved(ssize_t bytes) {
    if (bytes <= 0) return 0;
    at_ = (at_ + static_cast<size_t>(bytes)) % memory_.size();
    return static_cast<uint64_t>(bytes);
  }

  UniqueFd fd_;
  std::vector<std::byte> memory_;
  size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Lane> make_udp_batches(const Place& place, size_t size) {
  return std::make_unique<UdpBatches>(place, size);
}

std::unique_ptr<Lane> make_udp_trains(const Place& place, size_t segment) {
  return std::make_unique<UdpTrains>(place, segment);
}

std::unique_ptr<Lane> make_tcp_stream(const Place& place, size_t size) {
  return std::make_unique<TcpStream>(place, size);
}

std::string trains_obstacle() {
  const UniqueFd fd = open_socket(Address::loopback(AddressFamily::ipv4), SOCK_DGRAM);
  if (takes(fd.get(), UDP_SEGMENT, 1000) && takes(fd.get(), UDP_GRO, 1)) return "";
  return "this kernel has no UDP_SEGMENT and UDP_GRO";
}

}  // namespace diwarp::tools
