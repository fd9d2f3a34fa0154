// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/acceptor.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/log.h"
#include "diwarp/error.h"
#include "rnic/cm/negotiation.h"
#include "rnic/queues/queue_pair.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kMostStartups = 4096;

/// Without descriptors accept() fails, whether a connection waits or not.
bool connection_waits(int listening) {
  pollfd watched{listening, POLLIN, 0};
  return ::poll(&watched, 1, 0) == 1;
}

bool lacks_descriptors(int error) { return error == EMFILE || error == ENFILE; }

/// The connection that was to be accepted is the trouble, not this side.
bool concerns_peer_only(int error) { return error != ENOBUFS && error != ENOMEM; }

void check(const ListenOptions& options) {
  check_range("max_startups", options.max_startups, 1, kMostStartups);
  check_range("max_startups_per_address", options.max_startups_per_address, 1, kMostStartups);
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

Acceptor::Acceptor(Control& control, UniqueFd listening, const ListenOptions& options, Sink sink)
    : control_(control),
      request_timeout_(options.request_timeout),
      sink_(std::move(sink)),
      socket_(to_asio<Tcp::acceptor>(control.context(), std::move(listening))),
      retry_(control.context()),
      negotiations_(options.max_startups, options.max_startups_per_address) {}

void Acceptor::close() {
  closed_ = true;
  sink_ = {};
  AsioError ignored;
  socket_.close(ignored);
  retry_.cancel();
  negotiations_.for_each([](Negotiation& negotiation) { negotiation.cancel(); });
  negotiations_.clear();
}

void Acceptor::await() {
  if (closed_ || awaiting_) return;
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
  for (size_t count = 0; count < kAcceptBurst; ++count) {
    sockaddr_storage peer{};
    socklen_t length = sizeof peer;
    UniqueFd fd(::accept4(socket_.native_handle(), reinterpret_cast<sockaddr*>(&peer), &length,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd)
      negotiate(std::move(fd), Address::from_sockaddr(reinterpret_cast<sockaddr*>(&peer)));
    else if (!goes_on_after(errno))
      return;
  }
}

/// Whether the next connection can be asked for at once, after the kernel has given none.
bool Acceptor::goes_on_after(int error) {
  if (error == EAGAIN) return false;
  // guard(connect): => static_cast<void>(lacks_descriptors);
  if (lacks_descriptors(error)) return make_room();
  if (!concerns_peer_only(error)) retry_later();
  return concerns_peer_only(error);
}

/// False where there is none to be evicted.
bool Acceptor::evict(const std::shared_ptr<Negotiation>& negotiation) {
  if (!negotiation) return false;
  control_.counters().add_shared(Counter::mpa_evicted);  // before the peer can see it
  negotiation->cancel();
  return true;
}

/// There is no descriptor for the next connection: the oldest that has sent no request gives up its
/// own, and the next is taken in the next turn, when other requests were read; or it is refused.
bool Acceptor::make_room() {
  // guard(connect): => static_cast<void>(connection_waits);
  if (!connection_waits(socket_.native_handle())) return false;
  if (evict(negotiations_.take_oldest())) return false;  // guard(connect)
  switch (reserve_.refuse_next(socket_.native_handle())) {
    case llp::DescriptorReserve::Refusal::refused:
      break;
    case llp::DescriptorReserve::Refusal::nobody:
      return false;
    case llp::DescriptorReserve::Refusal::no_descriptor:
      retry_later();
      return false;
  }
  control_.counters().add_shared(Counter::accept_refused);
  tell_refusal();
  return true;
}

void Acceptor::tell_refusal() {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_notice_) return;  // guard(connect)
  next_notice_ = now + kRefusalNotice;
  const Address local = bound_address(socket_.native_handle());
  log::warn("The listener on " + local.to_string() +
            " refuses connections: no descriptor is left; raise the limit (ulimit -n, fs.file-max) "
            "or close some");  // guard(no-descriptors)
  control_.raise({.type = AsyncEventType::accept_refused, .address = local});
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

void Acceptor::negotiate(UniqueFd fd, const Address& peer) {
  const auto negotiation = std::make_shared<Negotiation>(
      control_, to_asio(control_.context(), std::move(fd)), request_timeout_);
  evict(negotiations_.add(peer, negotiation));
  try {
    negotiation->begin([self = shared_from_this()](const std::shared_ptr<Negotiation>& done) {
      self->on_negotiated(done);
    });
  } catch (const std::bad_alloc&) {
    negotiation->cancel();
    negotiations_.remove(negotiation);
    throw;
  }
}

void Acceptor::on_negotiated(const std::shared_ptr<Negotiation>& negotiation) {
  negotiations_.remove(negotiation);  // guard(connect)
  if (negotiation->outcome().request)
    within_memory([&] { admit(std::move(*negotiation->outcome().request)); });
  await();
}

void Acceptor::admit(IncomingRequest request) {
  if (sink_) sink_(request);
  if (request.stream) reject_connection(control_, std::move(request), {});  // guard(connect)
}

UniqueFd open_listening(const Address& address, const ListenOptions& options) {
  check(options);
  UniqueFd fd = open_tcp(address.family());
  if (!fd) throw_listen_error(errno, address);  // before another call sets errno
  const int on = 1;
  const int only_ipv6 = address.is_any() ? 0 : 1;
  sockaddr_storage storage;
  const socklen_t length = address.to_sockaddr(storage);
  // Connections of an earlier listener that linger in TIME_WAIT are no hindrance.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.family() == AddressFamily::ipv6)
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_ipv6, sizeof only_ipv6);
  const bool listens = ::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), length) == 0 &&
                       ::listen(fd.get(), std::max(options.backlog, 1)) == 0;
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
