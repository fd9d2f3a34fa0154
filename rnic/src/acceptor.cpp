// SPDX-License-Identifier: Apache-2.0
#include "acceptor.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "diwarp/error.h"
#include "negotiation.h"

namespace diwarp::rnic {

namespace {

/// The connection that was to be accepted is the trouble, not this side.
bool concerns_peer_only(int error) {
  return error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
}

[[noreturn]] void throw_listen_error(int error, const Address& address) {
  if (error == EADDRINUSE)
    throw Error(make_error_code(Errc::address_in_use),
                "Another socket listens on " + address.to_string() +
                    ": stop it, or choose another port (0 takes a free one)");
  throw Error(system_error(error), "Cannot listen on " + address.to_string() +
                                       ": ports below 1024 may need privileges; else see whether "
                                       "descriptors are left (ulimit -n)");
}

}  // namespace

Acceptor::Acceptor(Control& control, UniqueFd listening, Duration request_timeout, Sink sink)
    : control_(control),
      request_timeout_(request_timeout),
      sink_(std::move(sink)),
      socket_(to_asio<Tcp::acceptor>(control.context(), std::move(listening))),
      retry_(control.context()) {}

void Acceptor::close() {
  closed_ = true;
  sink_ = {};
  AsioError ignored;
  socket_.close(ignored);
  retry_.cancel();
  for (const std::shared_ptr<Negotiation>& negotiation : negotiations_) negotiation->cancel();
  negotiations_.clear();
}

void Acceptor::await() {
  if (closed_ || awaiting_ || negotiations_.size() >= kMaxNegotiations) return;
  awaiting_ = true;
  socket_.async_wait(Tcp::acceptor::wait_read,
                     MemberHandler<Acceptor, &Acceptor::on_readable>(shared_from_this(), memory_));
}

void Acceptor::on_readable(const AsioError& error) {
  awaiting_ = false;
  if (closed_) return;
  if (error) return retry_later();
  within_memory([this] { accept_burst(); });
  await();
}

/// Whatever becomes of one connection, the next ones are awaited.
void Acceptor::within_memory(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    control_.counters().add_shared(Counter::drop_no_memory);
  }
}

void Acceptor::accept_burst() {
  for (size_t count = 0; count < kAcceptBurst && negotiations_.size() < kMaxNegotiations; ++count) {
    UniqueFd fd(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      negotiate(std::move(fd));
    } else if (errno == EAGAIN) {
      return;
    } else if (!concerns_peer_only(errno)) {
      return retry_later();
    }
  }
}

void Acceptor::retry_later() {
  awaiting_ = true;
  retry_.expires_after(kAcceptRetry);
  retry_.async_wait(MemberHandler<Acceptor, &Acceptor::on_retry>(shared_from_this(), memory_));
}

void Acceptor::on_retry(const AsioError&) {
  awaiting_ = false;
  await();
}

void Acceptor::negotiate(UniqueFd fd) {
  const auto negotiation = std::make_shared<Negotiation>(
      control_, to_asio(control_.context(), std::move(fd)), request_timeout_);
  negotiations_.insert(negotiation);
  try {
    negotiation->begin([self = shared_from_this()](const std::shared_ptr<Negotiation>& done) {
      self->on_negotiated(done);
    });
  } catch (const std::bad_alloc&) {
    negotiation->cancel();
    negotiations_.erase(negotiation);
    throw;
  }
}

void Acceptor::on_negotiated(const std::shared_ptr<Negotiation>& negotiation) {
  negotiations_.erase(negotiation);
  if (negotiation->outcome().request)
    within_memory([&] { admit(std::move(*negotiation->outcome().request)); });
  await();
}

void Acceptor::admit(IncomingRequest request) {
  if (sink_) sink_(request);
  if (request.stream) reject_connection(control_, std::move(request), {});
}

UniqueFd open_listening(const Address& address, int backlog) {
  UniqueFd fd = open_tcp(address.family());
  const int on = 1;
  const int only_ipv6 = address.is_any() ? 0 : 1;
  sockaddr_storage storage;
  const socklen_t length = address.to_sockaddr(storage);
  // Connections of an earlier listener that linger in TIME_WAIT are no hindrance.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AddressFamily::ipv6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6);
  const bool listens = fd && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 &&
                       ::listen(fd.get(), std::max(backlog, 1)) == 0;
  if (!listens) throw_listen_error(errno, address);
  return fd;
}

Address bound_address(int fd) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0)
    throw Error(system_error(errno), "The listening socket's address cannot be read");
  return Address::from_sockaddr(reinterpret_cast<sockaddr*>(&storage));
}

}  // namespace diwarp::rnic
