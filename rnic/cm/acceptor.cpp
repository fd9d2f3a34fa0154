// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/acceptor.h"

#include <new>
#include <utility>

#include "base/log.h"
#include "diwarp/error.h"
#include "rnic/cm/negotiation.h"
#include "rnic/cm/startup_answers.h"
#include "rnic/queues/queue_pair.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kMostStartups = 4096;

void check(const ListenOptions& options) {
  check_range("max_startups", options.max_startups, 1, kMostStartups);
  check_range("max_startups_per_address", options.max_startups_per_address, 1, kMostStartups);
}

}  // namespace

Acceptor::Acceptor(Control& control, std::unique_ptr<llp::StreamListener> listener,
                   const ListenOptions& options, Sink sink)
    : control_(control),
      request_timeout_(options.request_timeout),
      sink_(std::move(sink)),
      listener_(std::move(listener)),
      readiness_(control.context()),
      retry_(control.context()),
      negotiations_(options.max_startups, options.max_startups_per_address) {
  readiness_.watch(listener_->descriptor());
}

void Acceptor::close() {
  closed_ = true;
  sink_ = {};
  readiness_.reset();
  listener_.reset();
  retry_.cancel();
  negotiations_.for_each([](Negotiation& negotiation) { negotiation.cancel(); });
  negotiations_.clear();
}

void Acceptor::wait_for_connection() {
  if (closed_ || waiting_) return;
  waiting_ = true;
  readiness_.until_readable(
      MemberHandler<Acceptor, &Acceptor::on_readable>(shared_from_this(), memory_));
}

void Acceptor::on_readable(const AsioError& error) {
  waiting_ = false;
  if (closed_) return;
  if (error) return retry_later();
  within_memory([this] { accept_burst(); });
  wait_for_connection();
}

/// Whatever becomes of one connection, the next ones are awaited.
void Acceptor::within_memory(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    control_.counters().add_shared(Counter::drop_no_memory);
    log::write(LogLevel::info, {.device = control_.device().name()},
               "there is no memory for a connection that came: it is closed");
  }
}

void Acceptor::accept_burst() {
  for (size_t count = 0; count < kAcceptBurst; ++count) {
    llp::AcceptResult accepted = listener_->accept();
    if (accepted.stream)
      negotiate(std::move(accepted.stream));
    else if (!goes_on_after(accepted.status))
      return;
  }
}

/// Whether the next connection can be asked for at once, after there was none to be had.
bool Acceptor::goes_on_after(llp::AcceptStatus status) {
  if (status == llp::AcceptStatus::none) return false;
  if (status == llp::AcceptStatus::no_descriptor) return make_room();  // guard(connect)
  if (status == llp::AcceptStatus::broken) return true;
  retry_later();
  return false;
}

/// False where there is none to be evicted.
bool Acceptor::evict(const std::shared_ptr<Negotiation>& negotiation) {
  if (!negotiation) return false;
  control_.counters().add_shared(Counter::mpa_evicted);  // before the peer can see it
  log::write(LogLevel::info, {.device = control_.device().name()},
             "a connection without an MPA request is closed, to make room for others");
  negotiation->cancel();
  return true;
}

/// There is no descriptor for the next connection: the oldest that has sent no request gives up its
/// own, and the next is taken in the next turn, when other requests were read; or it is refused.
bool Acceptor::make_room() {
  if (evict(negotiations_.take_oldest())) return false;  // guard(connect)
  switch (listener_->refuse_next()) {
    case llp::Refusal::refused:
      break;
    case llp::Refusal::nobody:
      return false;
    case llp::Refusal::no_descriptor:
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
  const Address local = listener_->local_address();
  log::warn("The listener on " + local.to_string() +
            " refuses connections: no descriptor is left; raise the limit (ulimit -n, fs.file-max) "
            "or close some");  // guard(no-descriptors)
  control_.raise({.type = AsyncEventType::accept_refused, .address = local});
}

void Acceptor::retry_later() {
  waiting_ = true;
  retry_.expires_after(kAcceptRetry);
  retry_.async_wait(MemberHandler<Acceptor, &Acceptor::on_retry>(shared_from_this(), memory_));
}

void Acceptor::on_retry(const AsioError&) {
  waiting_ = false;
  wait_for_connection();
}

void Acceptor::negotiate(std::unique_ptr<llp::Stream> stream) {
  const Address peer = stream->peer_address();
  const auto negotiation =
      std::make_shared<Negotiation>(control_, std::move(stream), request_timeout_);
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
  wait_for_connection();
}

void Acceptor::admit(IncomingRequest request) {
  if (sink_) sink_(request);
  if (request.stream) reject_connection(control_, std::move(request), {});  // guard(connect)
}

std::unique_ptr<llp::StreamListener> open_listener(Control& control, const Address& address,
                                                   const ListenOptions& options) {
  check(options);
  return control.connector().listen(address,
                                    {.backlog = options.backlog, .ipv6_only = options.ipv6_only});
}

}  // namespace diwarp::rnic
