// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/unique_fd.h"
#include "diwarp/error.h"
#include "llp/socket/descriptor_reserve.h"
#include "llp/socket/socket_address.h"
#include "llp/tcp/tcp_connector.h"
#include "llp/tcp/tcp_socket.h"
#include "llp/tcp/tcp_stream.h"

namespace diwarp::llp {

namespace {

/// Without descriptors accept() fails, whether a connection waits or not.
bool connection_waits(int listening) {
  pollfd watched{listening, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

[[noreturn]] void throw_listen_error(int error, const Address& address) {
  if (error == EADDRINUSE)
    throw Error(make_error_code(Errc::address_in_use),
                "Another socket listens on " + address.to_string() +
                    ": stop it, or choose another port (0 takes a free one)");
  throw Error(std::error_code(error, std::system_category()),
              "Cannot listen on " + address.to_string() +
                  ": ports below 1024 may need privileges; else see whether descriptors are left "
                  "(ulimit -n)");
}

UniqueFd open_listening(const Address& address, const ListenSettings& settings) {
  UniqueFd fd = open_tcp_socket(address.family());
  if (!fd) throw_listen_error(errno, address);  // before another call sets errno
  sockaddr_storage name;
  const socklen_t length = address.to_sockaddr(name);
  set_socket_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (address.family() == AddressFamily::ipv6)
    set_socket_option(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY,
                      address.is_any() && !settings.ipv6_only ? 0 : 1);
  const bool listens = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), length) == 0 &&
                       ::listen(fd.get(), std::max(settings.backlog, 1)) == 0;
  if (!listens) throw_listen_error(errno, address);
  return fd;
}

class TcpListener final : public StreamListener {
 public:
  explicit TcpListener(UniqueFd fd) : fd_(std::move(fd)), local_(local_address_of(fd_.get())) {}

  AcceptResult accept() override {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    UniqueFd fd(::accept4(fd_.get(), reinterpret_cast<sockaddr*>(&peer), &length,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return {.status = status_of(errno)};
    return {.status = AcceptStatus::accepted,
            .stream = TcpStream::over(std::move(fd), from_socket_address(peer, length))};
  }
  Refusal refuse_next() override { return reserve_.refuse_next(fd_.get()); }
  Address local_address() const override { return local_; }
  int descriptor() const override { return fd_.get(); }

 private:
  AcceptStatus status_of(int error) const {
    if (error == EAGAIN) return AcceptStatus::none;
    if (error == ENOBUFS || error == ENOMEM) return AcceptStatus::no_memory;
    if (error != EMFILE && error != ENFILE) return AcceptStatus::broken;
    // guard(connect): connection_waits(fd_.get()) => connection_waits(fd_.get()) || true
    return connection_waits(fd_.get()) ? AcceptStatus::no_descriptor : AcceptStatus::none;
  }

  const UniqueFd fd_;
  const Address local_;
  DescriptorReserve reserve_;
};

}  // namespace

std::unique_ptr<StreamListener> TcpConnector::listen(const Address& local,
                                                     const ListenSettings& settings) {
  return std::make_unique<TcpListener>(open_listening(local, settings));
}

}  // namespace diwarp::llp
