// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <chrono>
#include <vector>

#include "common/failure.h"
#include "common/interrupt.h"
#include "compare/ping_lane.h"
#include "compare/plain_socket.h"
#include "compare/socket_lanes.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// The near end gives a message up after this time and sends it again; loopback loses next to none.
constexpr Duration kPatience = std::chrono::milliseconds(100);

/// The common part of both kinds of sockets: polling without sleeping.
class SocketPing : public PingLane {
 public:
  SocketPing(Control& control, size_t size) : PingLane(control), buffer_(size) {}

 protected:
  virtual void send() = 0;
  /// One call that never waits; true once the whole message is there.
  virtual bool try_receive() = 0;

  std::vector<std::byte> buffer_;

 private:
  std::optional<Duration> ping() override {
    for (int tries = 0; tries < 100; ++tries) {
      const Time sent = steady_clock::now();
      send();
      if (!receive(sent + kPatience)) {
        check_interrupted();
        control_.look();
        continue;
      }
      if (tries > 0) return std::nullopt;
      return steady_clock::now() - sent;
    }
    throw Failure("The plain socket's answers do not come.");
  }

  void echo() override {
    while (!control_.pending()) {
      if (receive(steady_clock::now() + std::chrono::milliseconds(1))) {
        send();
      } else {
        check_interrupted();
        control_.look();
      }
    }
  }

  bool receive(Time deadline) {
    do {
      for (int i = 0; i < 64; ++i) {
        if (try_receive()) return true;
      }
    } while (steady_clock::now() < deadline);
    return false;
  }
};

class UnconnectedPing final : public SocketPing {
 public:
  UnconnectedPing(const Place& place, size_t size)
      : SocketPing(place.control, size),
        pair_(make_udp_pair(place, false)),
        peer_length_(pair_.peer.to_sockaddr(peer_)) {}

 private:
  void send() override {
    const auto* to = reinterpret_cast<const sockaddr*>(&peer_);
    while (true) {
      const ssize_t done =
          ::sendto(pair_.fd.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT, to, peer_length_);
      if (done >= 0) return;
      if (!would_block(done)) fail_socket("send");
    }
  }

  bool try_receive() override {
    sockaddr_storage from;
    socklen_t length = sizeof from;
    const ssize_t got = ::recvfrom(pair_.fd.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&from), &length);
    if (got < 0 && !would_block(got)) fail_socket("receive");
    return got >= 0;
  }

  UdpPair pair_;
  sockaddr_storage peer_{};
  socklen_t peer_length_;
};

class ConnectedPing final : public SocketPing {
 public:
  ConnectedPing(const Place& place, size_t size)
      : SocketPing(place.control, size), pair_(make_udp_pair(place, true)) {}

 private:
  void send() override {
    while (true) {
      const ssize_t done =
          ::send(pair_.fd.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (done >= 0) return;
      if (!would_block(done)) fail_socket("send");
    }
  }

  bool try_receive() override {
    const ssize_t got = ::recv(pair_.fd.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && !would_block(got)) fail_socket("receive");
    return got >= 0;
  }

  UdpPair pair_;
};

class TcpPing final : public SocketPing {
 public:
  TcpPing(const Place& place, size_t size)
      : SocketPing(place.control, size), fd_(make_tcp_connection(place)) {}

 private:
  void send() override {
    for (size_t sent = 0; sent < buffer_.size();) {
      const ssize_t done = ::send(fd_.get(), buffer_.data() + sent, buffer_.size() - sent,
                                  MSG_DONTWAIT | MSG_NOSIGNAL);
      if (done < 0 && !would_block(done)) fail_socket("send");
      if (done > 0) sent += static_cast<size_t>(done);
    }
  }

  bool try_receive() override {
    const ssize_t got =
        ::recv(fd_.get(), buffer_.data() + received_, buffer_.size() - received_, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && !would_block(got))) fail_socket("receive");
    if (got > 0) received_ += static_cast<size_t>(got);
    if (received_ < buffer_.size()) return false;
    received_ = 0;
    return true;
  }

  UniqueFd fd_;
  size_t received_ = 0;
};

}  // namespace

std::unique_ptr<Lane> make_udp_ping_pong(const Place& place, size_t size, bool connected) {
  if (connected) return std::make_unique<ConnectedPing>(place, size);
  return std::make_unique<UnconnectedPing>(place, size);
}

std::unique_ptr<Lane> make_tcp_ping_pong(const Place& place, size_t size) {
  return std::make_unique<TcpPing>(place, size);
}

}  // namespace diwarp::tools
