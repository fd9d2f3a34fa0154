// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "common/failure.h"
#include "common/interrupt.h"
#include "common/socket.h"
#include "latency_lanes.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// The near end gives a message up after this time and sends it again; loopback loses next to none.
constexpr Duration kPatience = std::chrono::milliseconds(100);

[[noreturn]] void fail_socket(const char* what) {
  throw Failure(std::string("A plain socket could not ") + what + ": " + std::strerror(errno) +
                ".");
}

bool would_block(ssize_t result) { return result < 0 && (errno == EAGAIN || errno == EINTR); }

/// What both kinds of sockets share: polling without sleeping.
class SocketLane : public Lane {
 public:
  SocketLane(Control& control, size_t size) : control_(control), buffer_(size) {}

  Duration ping() override {
    for (int tries = 0; tries < 100; ++tries) {
      const Time sent = steady_clock::now();
      send();
      if (receive(sent + kPatience)) return steady_clock::now() - sent;
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

 protected:
  virtual void send() = 0;
  /// One call that never waits; true once the whole message is there.
  virtual bool try_receive() = 0;

  Control& control_;
  std::vector<std::byte> buffer_;

 private:
  bool receive(Time deadline) {
    do {
      for (int i = 0; i < 64; ++i) {
        if (try_receive()) return true;
      }
    } while (steady_clock::now() < deadline);
    return false;
  }
};

class UdpLane final : public SocketLane {
 public:
  UdpLane(UniqueFd fd, const Address& peer, Control& control, size_t size)
      : SocketLane(control, size), fd_(std::move(fd)), peer_length_(peer.to_sockaddr(peer_)) {}

 private:
  void send() override {
    const auto* to = reinterpret_cast<const sockaddr*>(&peer_);
    while (true) {
      const ssize_t done =
          ::sendto(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT, to, peer_length_);
      if (done >= 0) return;
      if (!would_block(done)) fail_socket("send");
    }
  }

  bool try_receive() override {
    sockaddr_storage from;
    socklen_t length = sizeof from;
    const ssize_t got = ::recvfrom(fd_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT,
                                   reinterpret_cast<sockaddr*>(&from), &length);
    if (got < 0 && !would_block(got)) fail_socket("receive");
    return got >= 0;
  }

  UniqueFd fd_;
  sockaddr_storage peer_{};
  socklen_t peer_length_;
};

class TcpLane final : public SocketLane {
 public:
  TcpLane(UniqueFd fd, Control& control, size_t size)
      : SocketLane(control, size), fd_(std::move(fd)) {
    send_at_once(fd_.get());
  }

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

/// Tells the other end a port and learns its.
uint16_t exchange_ports(Control& control, uint16_t mine) {
  control.send({{"type", "port"}, {"port", mine}});
  return static_cast<uint16_t>(number_in(control.expect("port"), "port", 1, 65535));
}

UniqueFd connect_tcp(const Address& peer) {
  UniqueFd fd = open_socket(peer, SOCK_STREAM);
  sockaddr_storage storage{};
  const socklen_t length = peer.to_sockaddr(storage);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0) {
    fail_socket("connect");
  }
  return fd;
}

}  // namespace

std::unique_ptr<Lane> make_udp_lane(Side, Control& control, size_t size) {
  UniqueFd fd = bound_socket(control.local_address().with_port(0), SOCK_DGRAM);
  const uint16_t port = exchange_ports(control, local_address_of(fd.get()).port());
  return std::make_unique<UdpLane>(std::move(fd), control.peer_address().with_port(port), control,
                                   size);
}

std::unique_ptr<Lane> make_tcp_lane(Side side, Control& control, size_t size) {
  if (side == Side::near) {
    const auto port = static_cast<uint16_t>(number_in(control.expect("port"), "port", 1, 65535));
    return std::make_unique<TcpLane>(connect_tcp(control.peer_address().with_port(port)), control,
                                     size);
  }
  ControlListener listener(control.local_address().with_port(0));
  control.send({{"type", "port"}, {"port", listener.address().port()}});
  return std::make_unique<TcpLane>(listener.accept(control.timeout()), control, size);
}

}  // namespace diwarp::tools
