// SPDX-License-Identifier: Apache-2.0
#include "acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "negotiation.h"

namespace diwarp::rnic {

namespace {

/// The connection that was to be accepted is the trouble, not this side.
bool concerns_peer_only(int error) {
  return error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM;
}

}  // namespace

Acceptor::Acceptor(Control& control, UniqueFd listening, const ListenOptions& options)
    : control_(control),
      request_timeout_(options.request_timeout),
      max_requests_(options.max_requests),
      socket_(to_asio<Tcp::acceptor>(control.context(), std::move(listening))),
      retry_(control.context()) {}

IncomingRequest Acceptor::take() {
  const std::lock_guard lock(mutex_);
  IncomingRequest request = std::move(requests_.front());
  requests_.pop_front();
  return request;
}

std::deque<IncomingRequest> Acceptor::close() {
  closed_ = true;
  AsioError ignored;
  socket_.close(ignored);
  retry_.cancel();
  for (const std::shared_ptr<Negotiation>& negotiation : negotiations_) negotiation->cancel();
  negotiations_.clear();
  const std::lock_guard lock(mutex_);
  return std::exchange(requests_, {});
}

void Acceptor::await() {
  if (closed_ || awaiting_ || negotiations_.size() >= kMaxNegotiations) return;
  awaiting_ = true;
  socket_.async_wait(Tcp::acceptor::wait_read, [self = shared_from_this()](const AsioError& error) {
    self->on_readable(error);
  });
}

void Acceptor::on_readable(const AsioError& error) {
  awaiting_ = false;
  if (closed_) return;
  if (error) return retry_later();
  accept_burst();
  await();
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
  retry_.async_wait([self = shared_from_this()](const AsioError&) {
    self->awaiting_ = false;
    self->await();
  });
}

void Acceptor::negotiate(UniqueFd fd) {
  const auto negotiation = std::make_shared<Negotiation>(
      control_, to_asio(control_.context(), std::move(fd)), request_timeout_);
  negotiations_.insert(negotiation);
  negotiation->begin([self = shared_from_this()](const std::shared_ptr<Negotiation>& done) {
    self->on_negotiated(done);
  });
}

void Acceptor::on_negotiated(const std::shared_ptr<Negotiation>& negotiation) {
  negotiations_.erase(negotiation);
  if (negotiation->request()) admit(std::move(*negotiation->request()));
  await();
}

void Acceptor::admit(IncomingRequest request) {
  if (queue(request)) return sleeper_.wake();
  reject_connection(control_, std::move(request.stream), {});
}

bool Acceptor::queue(IncomingRequest& request) {
  const std::lock_guard lock(mutex_);
  if (requests_.size() >= max_requests_) return false;
  requests_.push_back(std::move(request));
  return true;
}

}  // namespace diwarp::rnic
